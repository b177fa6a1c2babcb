// SPDX-License-Identifier: Apache-2.0
// Changes of the local work of a program: faster parts, larger batches, ranks that are alike.
#pragma once

#include <cstddef>
#include <vector>

#include "analysis/graph/replay_program.h"

namespace paceline::analysis {

// Multiplies the work of these phases, on all tracks and inside iterations, by a factor.
void scale_phases(ReplayProgram& program, const std::vector<Phase>& phases, double factor);

// Divides the work of each group by its factor; factors[0] is that of group 1.
void speed_up_groups(ReplayProgram& program, const std::vector<double>& factors);

// Gives the main threads of all ranks the same work in each phase of an iteration: the mean over the ranks.
void balance_ranks(ReplayProgram& program);

// Makes the main threads of these ranks no slower than the usual one of the others, the one with the median of the mean
// work. A rank with more work than that gets the usual rank's values in each phase in which it has more: the smallest
// one in the iteration in which its own is the smallest, and so on, so that iterations that are slow on all ranks stay
// so. Warm-up iterations stay as they are. Returns for each iteration after those what the usual rank's work is
// above that of a relieved one, in ns, mean over the relieved ranks. Cost: n log n in the iterations.
std::vector<double> relieve_ranks(ReplayProgram& program, const std::vector<std::size_t>& ranks, std::size_t warmup);

// By how much each rank's own work exceeds the median of all ranks, in ns: the sum over the phases of the iterations
// after the first `warmup`. Cost: linear in the items, and a sort of the ranks for each phase of an iteration.
std::vector<double> excess_work(const ReplayProgram& program, std::size_t warmup);

// How much later the last of `ranks` ranks would arrive in each iteration, in ns, than the last of those that were
// recorded: the further ranks draw their work from that of the recorded ones in all iterations after the first
// `warmup`. Noise that all ranks have together stays in its iteration. 0 where there are no further ranks. Cost: n log
// n in ranks × iterations.
std::vector<double> later_arrivals(const ReplayProgram& program, std::size_t ranks, std::size_t warmup);

}  // namespace paceline::analysis
