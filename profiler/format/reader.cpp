// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/reader.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "profiler/format/block_summary.h"
#include "profiler/format/header_reader.h"
#include "profiler/format/input_file.h"
#include "profiler/format/trace_file_reader.h"

namespace paceline::format {
namespace {

// A block whose hash fits but that cannot be decoded.
void add_undecodable(const BlockEntry& block, TraceFacts& facts) {
  LostStretch lost{block.header.track, block.header.thread_id, block.header.first_ticks, block.header.last_ticks};
  lost.last_ticks = std::max(lost.first_ticks, lost.last_ticks);
  lost.cause = lost_by_damage;
  facts.lost.push_back(lost);
}

void finish_facts(const TraceFileReader& reader, TraceFacts& facts) {
  facts.damage = reader.damage();
  facts.damaged = !facts.damage.empty();
  std::ranges::stable_sort(facts.lost, {},
                           [](const LostStretch& lost) { return std::pair(lost.track, lost.first_ticks); });
}

class SummaryReader {
 public:
  explicit SummaryReader(const std::filesystem::path& path) : reader_(path), cursor_(reader_) {}

  TraceSummary read() {
    TraceSummary summary;
    static_cast<TraceFacts&>(summary.file) = reader_.facts();
    std::vector<const BlockEntry*> cuda;
    EventTotals& left_out = summary.file.left_out;
    for (const TrackBlocks& blocks : reader_.tracks()) {
      Track track{blocks.id, blocks.thread_id, {}};
      for (const BlockEntry& block : blocks.blocks) {
        const BlockHeader header = decode(block, track, summary.file);
        for (std::size_t family = 0; family < families; ++family) left_out.events[family] += header.count[family];
        if (count(header, Family::cuda) > 0) {
          cuda.push_back(&block);
        } else {
          left_out.last_ticks = std::max(left_out.last_ticks, header.last_ticks);
        }
      }
      summary.has_open_call = summary.has_open_call || ends_in_call(blocks);
      for_each_event(track.slots,
                     [&](const Slot&, const Slot*) { --left_out.events[static_cast<std::size_t>(Family::other)]; });
      summary.file.tracks.push_back(std::move(track));
    }
    // The times of their headers include waits and overheads: the blocks that may have the last event are decoded.
    std::ranges::sort(cuda, std::greater{}, [](const BlockEntry* block) { return block->header.last_ticks; });
    for (const BlockEntry* block : cuda) {
      if (block->has_summary() && block->header.last_ticks <= left_out.last_ticks) break;
      for_each_event(cursor_.slots(*block), [&](const Slot& head, const Slot*) {
        left_out.last_ticks = std::max(left_out.last_ticks, last_ticks_of(&head));
      });
    }
    finish_facts(reader_, summary.file);
    return summary;
  }

 private:
  static std::uint32_t count(const BlockHeader& header, Family family) {
    return header.count[static_cast<std::size_t>(family)];
  }

  // Adds the events that a summary keeps to `track`, and returns the block's header with its summary.
  BlockHeader decode(const BlockEntry& block, Track& track, TraceFacts& facts) {
    BlockHeader header = block.header;
    if (!block.may_contain(has_definitions | has_settings | has_clock | has_lost)) return header;
    const std::span<const Slot> slots = cursor_.slots(block);
    if (slots.empty() && header.slots > 0) {
      add_undecodable(block, facts);
      header = {};
    }
    if (!block.has_summary() && !slots.empty()) summarize(slots.data(), slots.size(), header);
    for_each_event(slots, [&](const Slot& head, const Slot* extension) {
      if (content_of(type_of(head)) == 0) return;
      track.slots.push_back(head);
      track.slots.insert(track.slots.end(), extension, extension + extension_slots(head));
    });
    return header;
  }

  // Looks at the last block with MPI calls, and for the end of its last call at the blocks behind it.
  bool ends_in_call(const TrackBlocks& track) {
    const auto has_calls = [](const BlockEntry& block) {
      return !block.has_summary() || count(block.header, Family::mpi) > 0;
    };
    auto block = std::find_if(track.blocks.rbegin(), track.blocks.rend(), has_calls).base();
    if (block == track.blocks.begin()) return false;
    bool open = false;
    for (--block; block != track.blocks.end(); ++block) {
      for (const EventType type : cursor_.types(*block)) {
        if (type == EventType::mpi_end) open = false;
        if (family_of(type) == Family::mpi) open = true;
      }
      if (!open) return false;
    }
    return true;
  }

  TraceFileReader reader_;
  BlockCursor cursor_;
};

}  // namespace

bool is_trace_file(const std::filesystem::path& path) {
  char magic[sizeof file_magic];
  const int descriptor = open_without_waiting(path);
  if (descriptor < 0) return false;
  const ssize_t got = pread(descriptor, magic, sizeof magic, 0);
  close(descriptor);
  return got == sizeof magic && std::memcmp(magic, file_magic, sizeof magic) == 0;
}

TraceFile read_trace_file(const std::filesystem::path& path) {
  const TraceFileReader reader(path);
  BlockCursor cursor(reader);
  TraceFile trace;
  static_cast<TraceFacts&>(trace) = reader.facts();
  for (const TrackBlocks& blocks : reader.tracks()) {
    Track track{blocks.id, blocks.thread_id, {}};
    track.slots.reserve(blocks.slots);
    for (const BlockEntry& block : blocks.blocks) {
      const std::span<const Slot> slots = cursor.slots(block);
      if (slots.empty() && block.header.slots > 0) add_undecodable(block, trace);
      track.slots.insert(track.slots.end(), slots.begin(), slots.end());
    }
    trace.tracks.push_back(std::move(track));
  }
  finish_facts(reader, trace);
  return trace;
}

TraceSummary read_trace_summary(const std::filesystem::path& path) { return SummaryReader(path).read(); }

TraceFile read_trace_header(const std::filesystem::path& path) {
  const InputFile file(path);
  TraceFile trace;
  trace.path = path;
  DamageLog damage;
  read_header(file, trace, damage);
  trace.damaged = !damage.empty();
  trace.damage = damage.text();
  return trace;
}

}  // namespace paceline::format
