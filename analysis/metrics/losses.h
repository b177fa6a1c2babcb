// What was lost of a run while it was recorded, and which of its iterations that touches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/metrics/iterations.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct RankLosses {
  std::uint64_t events = 0;         // lost events that may have begun or ended ranges, on any track
  std::int64_t main_ns = 0;         // time of the main thread that belongs to no phase
  bool main_thread = false;         // the main thread lost some, or is damaged, so that its phases are not whole
  bool other_threads = false;       // other tracks lost some
  bool located = true;              // false: the file does not say when the events were lost
  std::vector<std::string> causes;  // as in LostInterval
};

// Events that are only incomplete (a payload that was cut) and records of devices do not count.
RankLosses losses_of(const Rank& rank);

// The numbers of the iterations that losses of the main thread touch, sorted: those that are there, and those that are
// missing between their neighbours. `iterations` are the rank's.
std::vector<std::int64_t> touched_iterations(const Rank& rank, const std::vector<Iteration>& iterations);

// "3 to 8, 12 and 20", for sorted numbers; after the first 8 stretches "and 17 more".
std::string numbers_text(const std::vector<std::int64_t>& numbers);

}  // namespace paceline::analysis
