// SPDX-License-Identifier: Apache-2.0
// usage: make_corpus FOLDER: the first inputs of fuzz_reader's corpus (tests/data/fuzz-reader), small and well-formed.
// Its files have the version of the format in their names; those without one are of version 1.
#include <zstd.h>

#include <cstring>
#include <fstream>
#include <random>

#include "profiler/format/block.h"
#include "profiler/format/writer.h"
#include "tests/unit/profiler/format/streams.h"

int main(int, char** arguments) {
  using namespace paceline::format;
  const std::filesystem::path folder = arguments[1];
  const auto store = [&](const std::string& name, char kind, const std::string& bytes) {
    std::ofstream(folder / name, std::ios::binary) << kind << bytes;
  };
  const auto file_of = [&](const std::vector<Track>& tracks, Ending ending) {
    HeaderFacts facts;
    facts.host = "h";
    facts.set = "a=b";
    write_trace_file(folder / "made.pace", facts, tracks, ending);
    std::ifstream file(folder / "made.pace", std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::filesystem::remove(folder / "made.pace");
    return bytes;
  };
  std::mt19937_64 random(1);
  std::vector<Slot> all;
  for (int i = 0; i < 60; ++i) testing::append_random(all, random);
  const std::vector<Track> tracks = {{0, 1, all}, {1, 2, testing::trainer_stream(120, 2).slots}};
  store("closed-2", 1, file_of(tracks, Ending::closed));
  std::string killed = file_of(tracks, Ending::killed);
  store("killed-2", 1, killed.substr(0, 4096 + 65536 + 64 + 2000));  // cut in its first live chunk
  store("empty-2", 0, file_of({}, Ending::closed));

  // A unit that is divided into pages, and a table of lost stretches.
  std::string live = file_of({{0, 1, testing::trainer_stream(100, 2).slots}}, Ending::killed);
  constexpr std::size_t first = page_bytes, second = page_bytes + chunk_bytes;
  ChunkHeader chunk;
  std::memcpy(&chunk, &live[second], sizeof chunk);
  chunk.pages = 1;
  std::memcpy(&live[second], &chunk, sizeof chunk);
  std::memcpy(&live[second + page_bytes], &live[second], 2000);
  chunk.sequence = 9;
  chunk.track = 3;
  std::memcpy(&live[second + page_bytes], &chunk, sizeof chunk);
  const auto table = static_cast<std::uint32_t>(ChunkState::lost_table);
  std::memcpy(&live[first], &table, sizeof table);
  const LostEntry entry{5, 1000, 2000, 8, 7, 0, {}};
  std::memcpy(&live[first + sizeof chunk + sizeof entry], &entry, sizeof entry);
  store("divided-2", 1, live.substr(0, second + page_bytes + 2000));

  const auto columns = [&](const std::string& name, const std::vector<Slot>& slots) {
    BlockEncoder encoder;
    const auto block = encoder.encode({}, slots.data(), slots.size());
    BlockHeader header;
    std::memcpy(&header, block.data(), sizeof header);
    std::string raw(2 + header.raw_bytes, '\0');
    const auto count = static_cast<std::uint16_t>(slots.size());
    std::memcpy(raw.data(), &count, 2);
    if (ZSTD_decompress(&raw[2], header.raw_bytes, &block[sizeof header], header.payload_bytes) == header.raw_bytes) {
      store(name, 2, raw);
    }
  };
  columns("columns-random", all);
  columns("columns-trainer", tracks[1].slots);
  for (const EventType type : testing::all_types) {
    std::vector<Slot> slots;
    for (std::uint64_t word : {std::uint64_t{3}, std::uint64_t{300} << 32}) {
      const Slot head{pack_high(word, type), has_bytes(type) ? 5 | std::uint64_t{20} << 32 : word};
      slots.push_back(head);
      slots.insert(slots.end(), extension_slots(head), Slot{word, ~word});
    }
    columns("columns-type-" + std::to_string(static_cast<int>(type)), slots);
  }
}
