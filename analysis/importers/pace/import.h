// SPDX-License-Identifier: Apache-2.0
// Makes the model from .pace files, one for each process.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "analysis/clocks/trace_alignment.h"
#include "analysis/importers/pace/processes.h"
#include "analysis/trace/progress.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// `files` are those of one run. Ranks without a number get the free ones, in the order of their starts; which process
// belongs to which rank: processes.h. What was left out is noted (Trace::notes). Ranks are imported in parallel. Throws
// Error where the files are of different jobs. Cost: linear in the events.
Trace import_pace(std::vector<PaceEvents> files, const Progress& progress = {});

// The files of a run, of which some ranks at a time are imported, so that memory stays bounded. All ranks have the
// times and texts that import_pace() gives them.
class PaceRun {
 public:
  // Reads the definitions of all files, and puts all ranks on one clock: by the clock exchanges, else by UTC. For
  // `recorded` UTC alone counts, and for `collectives` align_ranks() is still to be called on the trace. Throws Error
  // as import_pace() does.
  explicit PaceRun(std::vector<PaceEvents> files, ClockMethod clock = ClockMethod::automatic);
  ~PaceRun();
  PaceRun(const PaceRun&) = delete;
  PaceRun& operator=(const PaceRun&) = delete;

  std::size_t ranks() const;
  std::uint64_t slots() const;  // of all files: the events with their extensions

  // The trace of these ranks, by their indices; each rank may be imported once. Ranks are imported in parallel. Cost:
  // linear in their events.
  Trace import(std::span<const std::size_t> ranks, const Progress& progress = {});
  Trace import_all(const Progress& progress = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What a process recorded about its clock.
ClockReadings readings_of(const PaceProcess& process);
// Where all times of a run are 0, on the clock that its processes were aligned to.
double zero_of(std::span<const AlignedClock> clocks);

// The trace of what is known of processes that still run, each of them a rank of its own. `clocks` are theirs. Cost:
// linear in their events and names.
Trace import_running(std::span<const PaceProcess* const> ranks, std::span<const AlignedClock> clocks);

// The same as the first for files in memory.
Trace import_pace(std::vector<format::TraceFile> files, const Progress& progress = {});

}  // namespace paceline::analysis
