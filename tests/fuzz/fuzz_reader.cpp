// Feeds hostile bytes to the reader of .pace files. With clang it is a libFuzzer program (fuzz_reader), with any
// compiler it replays the corpus (replay_fuzz_reader).
//
// The first byte says what the others are: 0 = a file; 1 = a file whose checksums are put right first, because no
// fuzzer guesses them; 2 = a block's columns, after the number of slots in two bytes.
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "profiler/format/block.h"
#include "profiler/format/block_decoder.h"
#include "profiler/format/error.h"
#include "profiler/format/hash.h"
#include "profiler/format/reader.h"
#include "profiler/format/trace_file_reader.h"

namespace {

using namespace paceline::format;

void require(bool holds) {
  if (!holds) std::abort();
}

template <typename T>
T load(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void put_checksums_right(std::vector<std::uint8_t>& file) {
  if (file.size() < sizeof(FileHeader)) return;
  auto header = load<FileHeader>(file.data());
  const std::size_t text_bytes = header.text_bytes;
  if (text_bytes <= file.size() - sizeof header) header.text_hash = XXH3_64bits(&file[sizeof header], text_bytes);
  header.hash = header_hash(header);
  std::memcpy(file.data(), &header, sizeof header);
  for (std::size_t at = sizeof header; at + sizeof block_magic <= file.size(); ++at) {
    if (std::memcmp(&file[at], block_magic, sizeof block_magic) != 0) continue;
    BlockHeader block;
    const std::size_t head = read_block_header(std::as_bytes(std::span(file).subspan(at)), block);
    if (head == 0 || block.payload_bytes > file.size() - at - head) continue;
    const std::uint64_t hash = block_hash(block, file.data() + at + head);
    std::memcpy(&file[at + head - sizeof hash], &hash, sizeof hash);
  }
}

// What was read is whole events, and the same again after encoding.
void check(const std::vector<Slot>& slots) {
  static BlockEncoder encoder;
  static BlockDecoder decoder;
  require(whole_slots(slots.data(), slots.size()) == slots.size());
  const std::size_t count = whole_slots(slots.data(), std::min(slots.size(), slots_per_chunk));
  const auto block = encoder.encode({}, slots.data(), count);
  require(block.empty() == (count == 0));
  if (count == 0) return;
  std::vector<Slot> again;
  BlockHeader header;
  require(read_block_header(block, header) == sizeof header);
  require(decoder.decode(header, block.subspan(sizeof header), again) == nullptr);
  require(again.size() == count);
  for (std::size_t at = 0; at < count;) {
    const Slot& head = slots[at];
    const std::size_t next = at + 1 + extension_slots(head);
    // The zeros after an event's bytes are not kept, and may be something else in a hostile file.
    const std::size_t bytes = has_bytes(type_of(head)) ? sizeof head + (head.low >> 32) : (next - at) * 16;
    require(std::memcmp(&slots[at], &again[at], bytes) == 0);
    at = next;
  }
}

// A reader of single blocks gets the same events, and from their types alone the same types.
void check_blocks(const std::string& path, const TraceFile& whole) {
  const TraceFileReader reader(path);
  BlockCursor cursor(reader), types_cursor(reader);
  require(reader.tracks().size() == whole.tracks.size());
  for (std::size_t i = 0; i < whole.tracks.size(); ++i) {
    std::size_t at = 0;
    const std::vector<Slot>& expected = whole.tracks[i].slots;
    for (const BlockEntry& block : reader.tracks()[i].blocks) {
      const std::span<const Slot> slots = cursor.slots(block);
      require(slots.size() <= expected.size() - at);
      require(slots.empty() || std::memcmp(slots.data(), &expected[at], slots.size_bytes()) == 0);
      at += slots.size();
      std::vector<EventType> types;
      for_each_event(slots, [&](const Slot& head, const Slot*) { types.push_back(type_of(head)); });
      const std::span<const EventType> alone = types_cursor.types(block);
      require(slots.empty() || std::ranges::equal(types, alone));
    }
    require(at == expected.size());
  }
}

void read_file(std::span<const std::uint8_t> bytes) {
  static const int file = memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  require(ftruncate(file, 0) == 0);
  require(pwrite(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  is_trace_file(path);
  try {
    const TraceFile trace = read_trace_file(path);
    require(trace.damaged == !trace.damage.empty());
    for (const Track& track : trace.tracks) check(track.slots);
    for (const LostStretch& lost : trace.lost) require(lost.first_ticks <= lost.last_ticks);
    check_blocks(path, trace);
    const TraceSummary summary = read_trace_summary(path);
    require(summary.file.damaged == !summary.file.damage.empty());
    require(summary.file.tracks.size() == trace.tracks.size());
    for (const Track& track : summary.file.tracks) check(track.slots);
  } catch (const paceline::Error&) {
  }
}

void read_columns(std::span<const std::uint8_t> bytes) {
  static BlockDecoder decoder;
  if (bytes.size() < 2 || bytes.size() - 2 > max_raw_bytes) return;
  const std::span<const std::uint8_t> columns = bytes.subspan(2);
  std::vector<std::byte> payload(ZSTD_compressBound(columns.size()));
  payload.resize(ZSTD_compress(payload.data(), payload.size(), columns.data(), columns.size(), 1));
  BlockHeader header{};
  header.kind = block_kind_summary;
  header.slots = load<std::uint16_t>(bytes.data());
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.raw_bytes = static_cast<std::uint32_t>(columns.size());
  header.hash = block_hash(header, payload.data());
  std::vector<Slot> slots;
  if (decoder.decode(header, payload, slots) == nullptr) {
    require(slots.size() == header.slots);
    check(slots);
  } else {
    require(slots.empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::uint8_t> rest(data + 1, size - 1);
  if (data[0] % 3 == 2) {
    read_columns(rest);
    return 0;
  }
  std::vector<std::uint8_t> file(rest.begin(), rest.end());
  if (data[0] % 3 == 1) put_checksums_right(file);
  read_file(file);
  return 0;
}
