// SPDX-License-Identifier: Apache-2.0
// Reads a RUN for the report: as a whole, or rank by rank where it is too large, then also by several processes.
//
// A run as a whole gives all figures. Rank by rank, memory holds the events of a few ranks at a time and the summary of
// each (rank_summary.h): its iterations, its collective calls and its ranges. The figures that need the events of all
// ranks at once are left out then: messages, the critical path and the predictions. The size of the run alone decides,
// so that one process and several give the same report.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/clocks/trace_alignment.h"
#include "analysis/load/run_paths.h"
#include "analysis/run/run_analysis.h"
#include "analysis/trace/progress.h"

namespace paceline::analysis {

// The slots of the largest run that is read as a whole; a range has two slots, its begin and its end. 400 million take
// some 10 GB.
inline constexpr std::uint64_t whole_run_slots = 400'000'000;

// Several processes that read one run together. Each method is called by all processes, in the same order.
class ReadingProcesses {
 public:
  virtual ~ReadingProcesses() = default;
  virtual std::size_t number() const = 0;  // of this process, from 0
  virtual std::size_t count() const = 0;
  // Process 0 gets the bytes of each process, in the order of their numbers; the others get nothing.
  virtual std::vector<std::string> gather(const std::string& bytes) = 0;
  // Process 0's value for all.
  virtual bool broadcast(bool value) = 0;
};

struct RunReading {
  std::uint64_t most_slots = whole_run_slots;
  ReadingProcesses* processes = nullptr;  // null: this process is alone
  // Only `automatic` reads a large run rank by rank; the other methods read it as a whole, on process 0.
  ClockMethod clock = ClockMethod::automatic;
};

// What process 0 has of a run; the others have nothing.
struct ReadRun {
  RunAnalysis run;
  std::vector<std::string> notes;  // what was left out, one line each
};

// Calls the work with a Progress, which may stop it by an Error.
using WithProgress = std::function<void(const std::function<void(const Progress&)>&)>;

// Reads the run inside `with_progress`, and analyses it. Throws Error where it cannot be read, on process 0 for a
// failure of any process; the other processes return nothing then, with `failed` set. Of files that are no .pace files,
// process 0 reads all.
std::optional<ReadRun> read_run(const RunPaths& run, const RunReading& reading, const WithProgress& with_progress,
                                bool& failed);

}  // namespace paceline::analysis
