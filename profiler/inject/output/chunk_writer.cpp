// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/output/chunk_writer.h"

#include <errno.h>

#include <algorithm>
#include <new>

#include "profiler/format/block.h"
#include "profiler/inject/buffer/chunks.h"
#include "profiler/inject/buffer/lost.h"
#include "profiler/inject/buffer/session.h"
#include "profiler/inject/output/output_file.h"

namespace paceline::inject {
using format::ChunkHeader;
using format::Slot;

namespace {

// The encoder lives in place, never destroyed: this library must not run a destructor while others still record.
alignas(format::BlockEncoder) std::byte encoder_place[sizeof(format::BlockEncoder)];
format::BlockEncoder* encoder = nullptr;
Slot kept[format::slots_per_chunk];

const Slot* slots_of(std::uint32_t number) { return reinterpret_cast<const Slot*>(session.file.chunk_at(number) + 1); }

bool append(const ChunkHeader& chunk, const Slot* slots, std::size_t count) {
  const std::span<const std::byte> block = encoder->encode(chunk, slots, count);
  errno = ENOMEM;
  return !block.empty() && append_block(session.file, block);
}

}  // namespace

void start_chunk_writer() {
  if (encoder == nullptr) encoder = new (encoder_place) format::BlockEncoder;
}

bool write_chunk(std::uint32_t number) {
  const Slot* slots = slots_of(number);
  const std::size_t whole = format::whole_slots(slots, slots_of_chunk(number));
  return whole == 0 || append(*session.file.chunk_at(number), slots, whole);
}

bool write_lost_events(bool all) { return write_lost(all, append); }

bool write_chunk_from(std::uint32_t number, std::uint64_t first_ticks) {
  const Slot* slots = slots_of(number);
  const std::size_t whole = format::whole_slots(slots, slots_of_chunk(number));
  std::size_t count = 0;
  for (std::size_t at = 0, next = 0; at < whole; at = next) {
    next = at + 1 + format::extension_slots(slots[at]);
    if (format::ticks_of(slots[at]) < first_ticks && !format::outlives_ring(format::type_of(slots[at]))) continue;
    std::copy(slots + at, slots + next, kept + count);
    count += next - at;
  }
  return count == 0 || append(*session.file.chunk_at(number), kept, count);
}

ChunkSummary summarize_chunk(std::uint32_t number) {
  const Slot* slots = slots_of(number);
  const std::size_t whole = format::whole_slots(slots, slots_of_chunk(number));
  ChunkSummary summary;
  for (std::size_t at = 0; at < whole; at += 1 + format::extension_slots(slots[at])) {
    const std::uint64_t ticks = format::ticks_of(slots[at]);
    summary.first_ticks = summary.last_ticks == 0 ? ticks : std::min(summary.first_ticks, ticks);
    if (format::type_of(slots[at]) == format::EventType::lost) {
      const std::size_t cause = slots[at].low & 0xff;
      if (cause < summary.lost.size()) summary.lost[cause] += slots[at].low >> 16;
    } else {
      ++summary.events;
    }
    summary.last_ticks = std::max(summary.last_ticks, format::ticks_of(slots[at]));
  }
  return summary;
}

}  // namespace paceline::inject
