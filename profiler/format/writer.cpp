// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>

#include "profiler/format/block.h"
#include "profiler/format/error.h"

namespace paceline::format {
namespace {

struct Chunk {
  ChunkHeader header{};
  std::span<const Slot> slots;
};

// The tracks cut into chunks, in the order of their sequence numbers; `last` marks each track's last one.
std::vector<Chunk> chunks_of(const std::vector<Track>& tracks, std::vector<bool>& last) {
  std::vector<Chunk> chunks;
  std::vector<std::size_t> taken(tracks.size(), 0);
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < tracks.size(); ++i) {
      const std::span<const Slot> rest = std::span(tracks[i].slots).subspan(taken[i]);
      if (rest.empty()) continue;
      const std::size_t slots = whole_slots(rest.data(), std::min(rest.size(), slots_per_chunk));
      if (slots == 0) {
        throw Error(fmt::format("track {}, slot {}: not a whole event that fits into a chunk", tracks[i].id, taken[i]));
      }
      taken[i] += slots;
      Chunk chunk;
      chunk.header.track = tracks[i].id;
      chunk.header.sequence = chunks.size() + 1;
      chunk.header.thread_id = tracks[i].thread_id;
      chunk.slots = rest.first(slots);
      chunks.push_back(chunk);
      last.push_back(slots == rest.size());
      more = true;
    }
  }
  return chunks;
}

}  // namespace

void write_trace_file(const std::filesystem::path& path, HeaderFacts facts, const std::vector<Track>& tracks,
                      Ending ending) {
  std::vector<bool> last;
  const std::vector<Chunk> chunks = chunks_of(tracks, last);
  std::vector<std::byte> live;  // one free unit, then those of the open chunks
  if (ending == Ending::killed) live.resize(chunk_bytes);
  std::size_t page_at = 0;  // in a divided unit; 0 = none has begun
  std::vector<std::byte> blocks;
  BlockEncoder encoder;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (ending == Ending::killed && last[i]) {
      ChunkHeader header = chunks[i].header;
      header.state = static_cast<std::uint32_t>(ChunkState::open);
      std::size_t at = live.size();
      if (chunks[i].slots.size() <= slots_per_page) {
        header.pages = 1;
        const bool begun = page_at % chunk_bytes != 0;
        at = begun ? page_at : at;
        page_at = at + page_bytes;
      }
      if (at == live.size()) live.resize(at + chunk_bytes);
      std::memcpy(&live[at], &header, sizeof header);
      std::memcpy(&live[at + sizeof header], chunks[i].slots.data(), chunks[i].slots.size_bytes());
    } else {
      const auto block = encoder.encode(chunks[i].header, chunks[i].slots.data(), chunks[i].slots.size());
      blocks.insert(blocks.end(), block.begin(), block.end());
    }
  }

  facts.live_bytes = live.size();
  std::vector<std::byte> bytes(max_header_bytes);
  bytes.resize(make_header(facts, bytes.data(), bytes.size()));
  if (bytes.empty()) throw Error(fmt::format("{}: the texts of the header are too long", path.string()));
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.blocks_end += blocks.size();
  header.closed = ending == Ending::closed ? 1 : 0;
  std::memcpy(bytes.data(), &header, sizeof header);
  bytes.insert(bytes.end(), live.begin(), live.end());
  bytes.insert(bytes.end(), blocks.begin(), blocks.end());

  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw Error(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(errno)));
}

void TraceWriter::define(EventType type, std::uint64_t low, std::initializer_list<Slot> extension) {
  definitions_.push_back({pack_high(0, type), low});
  definitions_.insert(definitions_.end(), extension);
}

std::uint32_t TraceWriter::name(std::string_view text) {
  if (text.empty()) return 0;
  const auto [found, is_new] = names_.try_emplace(std::string(text), static_cast<std::uint32_t>(names_.size() + 1));
  if (is_new) {
    define(EventType::name, found->second | std::uint64_t{text.size()} << 32);
    const std::size_t at = definitions_.size();
    definitions_.resize(at + (text.size() + sizeof(Slot) - 1) / sizeof(Slot));
    std::memcpy(&definitions_[at], text.data(), text.size());
  }
  return found->second;
}

std::uint16_t TraceWriter::domain(std::string_view name_text) {
  if (name_text.empty()) return 0;
  const std::uint64_t id = name(name_text);
  const auto [found, is_new] =
      domains_.try_emplace(std::string(name_text), static_cast<std::uint16_t>(domains_.size() + 1));
  if (is_new) define(EventType::domain, found->second | id << 32);
  return found->second;
}

std::uint16_t TraceWriter::category(std::string_view domain_name, std::string_view name_text) {
  if (name_text.empty()) return 0;
  const std::uint16_t in = domain(domain_name);
  const std::uint64_t id = name(name_text);
  const auto [found, is_new] = categories_.try_emplace(std::pair(in, std::string(name_text)),
                                                       static_cast<std::uint16_t>(categories_.size() + 1));
  if (is_new) define(EventType::category, in | std::uint64_t{found->second} << 32, {{id, 0}});
  return found->second;
}

std::uint64_t TraceWriter::scope(std::string_view name_text, std::string_view domain_name,
                                 std::string_view category_name) {
  const std::uint32_t id = name(name_text);
  const std::uint16_t in = domain(domain_name);
  return pack_scope(id, category(domain_name, category_name), in);
}

void TraceWriter::thread(std::uint32_t track, std::uint64_t thread_id, std::string_view name_text) {
  Track& to = tracks_.try_emplace(track, Track{track, thread_id, {}}).first->second;
  to.thread_id = thread_id;
  if (!name_text.empty()) add(track, 0, EventType::thread_name, std::uint64_t{name(name_text)} << 32, {{thread_id, 0}});
}

void TraceWriter::add(std::uint32_t track, std::uint64_t ticks, EventType type, std::uint64_t low,
                      std::initializer_list<Slot> extension) {
  const Slot head{pack_high(ticks, type), low};
  if (extension.size() != extension_slots(head)) {
    throw Error(fmt::format("an event of type {} takes {} extension slots, not {}", static_cast<int>(type),
                            extension_slots(head), extension.size()));
  }
  auto& slots = tracks_.try_emplace(track, Track{track, facts_.pid + track, {}}).first->second.slots;
  slots.push_back(head);
  slots.insert(slots.end(), extension);
}

void TraceWriter::write(const std::filesystem::path& path, Ending ending) const {
  std::vector<Track> tracks;
  if (!definitions_.empty() && !tracks_.contains(0)) tracks.push_back({0, facts_.pid, definitions_});
  for (const auto& [id, track] : tracks_) {
    tracks.push_back(track);
    if (id == 0) tracks.back().slots.insert(tracks.back().slots.begin(), definitions_.begin(), definitions_.end());
  }
  write_trace_file(path, facts_, tracks, ending);
}

}  // namespace paceline::format
