// SPDX-License-Identifier: Apache-2.0
// Feeds hostile bytes (hostile_file.h) to the reader of .pace files. With clang it is a libFuzzer program
// (fuzz_reader), with any compiler it replays the corpus (replay_fuzz_reader).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "profiler/format/error.h"
#include "profiler/format/reader.h"
#include "profiler/format/trace_file_reader.h"
#include "tests/fuzz/hostile_file.h"

namespace {

using namespace paceline::format;
using namespace paceline::fuzz;

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
  static MemoryFile file;
  const std::string& path = file.write(bytes);
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::uint8_t> rest(data + 1, size - 1);
  if (kind_of(data[0]) == InputKind::columns) {
    check(slots_of_columns(rest));
    return 0;
  }
  std::vector<std::uint8_t> file(rest.begin(), rest.end());
  if (kind_of(data[0]) == InputKind::file_with_checksums) put_checksums_right(file);
  read_file(file);
  return 0;
}
