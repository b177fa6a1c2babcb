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

// Gives the main threads of these ranks the median work of all others in each phase of an iteration where they have
// more.
void relieve_ranks(ReplayProgram& program, const std::vector<std::size_t>& ranks);

// By how much each rank's own work exceeds the median of all ranks, in ns: the sum over the phases of the iterations
// after the first `warmup`. Cost: linear in the items, and a sort of the ranks for each phase of an iteration.
std::vector<double> excess_work(const ReplayProgram& program, std::size_t warmup);

// The standard deviation of a rank's work in an iteration around the rank's own mean, in ns, over iterations after the
// first `warmup`.
double work_deviation(const ReplayProgram& program, std::size_t warmup);

}  // namespace paceline::analysis
