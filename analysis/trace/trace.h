// SPDX-License-Identifier: Apache-2.0
// The in-memory model of a run: ranks, their tracks, their slices as columns.
//
// A slice is a named stretch of time on a track (a function, an NVTX range, an MPI call). Slices of one track nest:
// sorted by start, and where starts are equal by depth. Times are signed 64-bit nanoseconds from the run's zero (the
// earliest process start), on one clock for all ranks.
//
// MPI calls are slices of the thread that made them, nested in the ranges around them (domain "mpi", category by kind:
// "collective", "point-to-point", "wait", "management", "one-sided", "file"), so that the innermost slice tells what a
// thread did. A row of their own is the same slices with another index (index/level_of_detail.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/trace/communicators.h"
#include "analysis/trace/slices.h"
#include "analysis/trace/stacks.h"
#include "analysis/trace/thread_states.h"

namespace paceline::analysis {

enum class TrackKind : std::uint8_t { thread, mpi, stream, nccl, copy, counter };

// Values over time, of a track of kind counter.
struct Samples {
  std::string name, unit, device;  // "bytes sent", "bytes", "eth0"; the unit of a plain count is ""
  // A sum is counted from its first sample and only rises: its increase is the figure. Otherwise the value itself is.
  bool is_sum = false;
  std::vector<std::int64_t> time_ns;  // rising
  std::vector<double> value;          // exact for integers below 2^53

  std::size_t size() const { return time_ns.size(); }
};

// A stretch of a track of which events are missing. A range that was pushed or popped in it may be absent, cut or too
// long, so its time belongs to no phase. Both ends belong to it; a single lost event may have start_ns == end_ns.
struct LostInterval {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint64_t events = 0;  // how many are missing at least; 0: not known
  std::string cause;         // a key of Rank::dropped ("no_free_chunk", "disk", …), or "damage"
};

struct Track {
  TrackKind kind = TrackKind::thread;
  std::string label;  // "main thread", "thread 4711", "MPI", …
  std::uint64_t thread_id = 0;
  bool main = false;  // the thread whose phases are the rank's
  Slices slices;
  Slices marks;
  std::uint16_t depths = 0;        // number of nesting levels used
  Samples samples;                 // of a counter, which has no slices and marks
  ThreadStates states;             // of a thread; empty where nothing recorded them
  StackSamples stacks;             // likewise
  std::vector<LostInterval> lost;  // sorted by start, disjoint, within the rank's start to end
};

// A time that was not recorded, or in which events of the main thread were lost. The reason is for people: "outside
// --iterations". Phases leave gaps out, and iterations that a gap touches do not count.
struct Gap {
  std::int64_t start_ns = 0, end_ns = 0;
  std::string reason;
  bool lost = false;  // events were lost here; else the recording was paused on purpose
};

// Why the recorder wrote something out or said something: a signal, a slow iteration, a hang.
struct Trigger {
  std::int64_t time_ns = 0;
  std::string cause;
};

inline constexpr int unknown_rank = -1;  // until the loader has numbered the ranks

struct Rank {
  int rank = 0, world_size = 1, local_rank = 0;
  std::string path, format, host, boot_id;
  std::int64_t pid = 0;
  std::vector<std::string> command;
  std::map<std::string, std::string> set;
  std::map<std::string, std::string> facts;      // what the recorder learned of machine and process: trace-format.md
  std::int64_t start_ns = 0, end_ns = 0;         // process start, last event; wall time is the difference
  std::map<std::string, std::uint64_t> dropped;  // events lost, by cause
  std::int64_t recorder_wait_ns = 0;             // how long threads waited for the recorder (--lossless), in sum
  bool ended = true;  // the process came to its end, as far as its file says; else it was killed, or still runs
  bool damaged = false;
  std::string damage;
  std::string clock_source;        // "tsc", "monotonic_raw", "utc", …
  std::string clock_error_source;  // how it is known what the CPUs of the machine are apart
  double clock_error_ns = 0;       // bound of the error against the run's reference clock
  // The UTC time at which this rank's times are 0, in ns since 1970, by the clock of its host. Absent where the format
  // has no date.
  std::optional<std::int64_t> utc_of_zero_ns;
  std::uint64_t nvtx_events = 0, mpi_events = 0, cuda_events = 0, nccl_events = 0, counter_events = 0;
  std::vector<Track> tracks;
  std::vector<LostInterval> lost;  // like Track::lost, where the track is not known: they concern every track
  std::vector<Gap> gaps;           // sorted, disjoint, within start to end; slices that a pause cuts are "unfinished"
  std::vector<Trigger> triggers;
  std::vector<NameId> communicators;             // that it is a member of, by the text that slices have
  std::vector<std::int32_t> communicator_ranks;  // its rank in each of them; -1: not known
  // How often each persistent collective, by its communicator's identity and its number, was started before the part of
  // the run that the trace holds.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> earlier_starts;

  std::int64_t recorded_ns() const;  // wall time without the gaps
};

struct Trace : Vocabulary {
  Communicators communicators;
  Stacks stacks;
  std::vector<Rank> ranks;         // sorted by rank
  bool mixed_collectives = false;  // those of different ranks do not belong together, so that none can be matched
  std::vector<std::string> notes;  // what was left out while loading, one line each, for people
  std::string iteration_name;      // pattern of the ranges that are iterations; "": the built-in rules
  std::int64_t span_ns() const;    // from the run's zero to the last rank's end

  const Kind& kind_of(const Slices& slices, std::size_t i) const { return kinds[slices.kind[i]]; }
  const std::string& name_of(const Slices& slices, std::size_t i) const { return names[kind_of(slices, i).name]; }
};

// Sorted and disjoint: stretches that overlap or touch become one, which has the sum of their events.
std::vector<LostInterval> merged_losses(std::vector<LostInterval> losses);

// The stretches in which events of the main thread were lost: those of its track and those of the rank.
std::vector<LostInterval> main_thread_losses(const Rank& rank);

// The main thread's track, or nullptr where the rank has none.
const Track* main_track(const Rank& rank);

}  // namespace paceline::analysis
