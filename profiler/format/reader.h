// SPDX-License-Identifier: Apache-2.0
// Reads a .pace file as a whole, from a running, ended or killed process, even if it is damaged.
//
// Large files are better read block by block: trace_file_reader.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "profiler/format/event_table.h"
#include "profiler/format/trace_facts.h"

namespace paceline::format {

struct Track {
  std::uint32_t id = 0;
  std::uint64_t thread_id = 0;
  std::vector<Slot> slots;  // heads with their extension slots, in the order written
};

// Events that were counted but not decoded.
struct EventTotals {
  std::uint64_t events[families] = {};  // by Family
  std::uint64_t last_ticks = 0;         // the highest, relative as in events; the end of an event with a duration
};

struct TraceFile : TraceFacts {
  std::vector<Track> tracks;  // by id
  EventTotals left_out;       // events that are not in `tracks`: 0 but for read_trace_summary()
};

// True if the file starts as a .pace file does. Costs one read of 8 bytes.
bool is_trace_file(const std::filesystem::path& path);

// Throws Error where not even a header can be read. Damage after the header is no error: what can be read is returned,
// with `damaged` set. A process that still runs, or was killed, left no damage (header.closed is 0). Every byte may be
// hostile. Of a running process, whole events up to some moment during the call are returned. Cost: linear in the file;
// 16 bytes of memory for each slot.
TraceFile read_trace_file(const std::filesystem::path& path);

// The header alone, without tracks. Throws Error as above. Costs two small reads.
TraceFile read_trace_header(const std::filesystem::path& path);

struct TraceSummary {
  // All tracks, each with only its definitions, settings, clock events and `lost`; the others are in `left_out`.
  TraceFile file;
  // The last MPI event of some track begins a call. Where no event was lost, no other call is open.
  bool has_open_call = false;
};

// What a file contains, without most of its events: checks all hashes, but decodes only the blocks with definitions,
// settings, clock events and lost events. (Blocks of version 1 do not have counts, so all of them are decoded.) Throws
// Error as above.
TraceSummary read_trace_summary(const std::filesystem::path& path);

}  // namespace paceline::format
