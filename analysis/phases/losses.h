// SPDX-License-Identifier: Apache-2.0
// What the recorder lost of a rank, and which of its iterations are affected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/phases/iterations.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct RankLosses {
  std::uint64_t events = 0;         // lost events that may have begun or ended ranges, on any track
  std::int64_t main_ns = 0;         // time of the main thread that belongs to no phase
  bool main_thread = false;         // the main thread lost events or is damaged, so its phases are incomplete
  bool other_threads = false;       // other tracks lost events
  bool located = true;              // false: the file does not record when the events were lost
  std::vector<std::string> causes;  // as in LostInterval
};

// Events that are only incomplete (a payload that was cut) and records of devices do not count.
RankLosses losses_of(const Rank& rank);

// The sorted numbers of the iterations that losses of the main thread affect: recorded ones, and those that are missing
// between their neighbours. `iterations` are those of the rank.
std::vector<std::int64_t> touched_iterations(const Rank& rank, const std::vector<Iteration>& iterations);

}  // namespace paceline::analysis
