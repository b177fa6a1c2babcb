// SPDX-License-Identifier: Apache-2.0
// Changes of the local work of a program: faster parts, larger batches, ranks that are alike. The order of its items
// stays, so that a replay takes the changes as factors, without a program of their own.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "analysis/graph/replay_program.h"

namespace paceline::analysis {

using PhaseWork = std::array<double, phase_count>;
// Of the main threads, in ns: by rank and iteration.
using RankWork = std::vector<std::vector<PhaseWork>>;

// By what the work of a program is multiplied.
class WorkFactors {
 public:
  WorkFactors() { phases_.fill(1); }

  // Multiplies the work of these phases, on all tracks and inside iterations, by a factor.
  void scale_phases(std::span<const Phase> phases, double factor);
  // Divides the work of each group by its factor; factors[0] is that of group 1.
  void speed_up_groups(const std::vector<double>& factors);
  // Multiplies the work of a main thread inside iterations; there is one factor for each iteration and phase.
  void scale_rank(std::size_t rank, std::vector<PhaseWork> factors);

  bool any() const { return changed_; }
  double phase(std::size_t phase) const { return phases_[phase]; }
  double group(std::size_t group) const { return group > 0 && group <= groups_.size() ? groups_[group - 1] : 1; }
  // Of the main thread, by iteration; nullptr: all are 1.
  const PhaseWork* of_rank(std::size_t rank) const {
    return rank < ranks_.size() && !ranks_[rank].empty() ? ranks_[rank].data() : nullptr;
  }
  // The changed time of an item of work.
  double scaled(const ReplayTrack& track, const ReplayItem& item) const;

 private:
  bool changed_ = false;
  PhaseWork phases_;
  std::vector<double> groups_;
  RankWork ranks_;
};

// Cost: linear in the items.
RankWork work_of(const ReplayProgram& program, const WorkFactors& factors = {});
// Changes the items themselves. Tracks whose work stays are shared with copies of the program as before.
void scale_work(ReplayProgram& program, const WorkFactors& factors);

// The work of each rank that does not depend on others, in the iterations after the warm-up.
struct WorkSums {
  std::vector<PhaseWork> phases;
  std::vector<double> totals;
};
WorkSums sums_of(const RankWork& work, std::size_t warmup);

// Gives the main threads of all ranks the same work in each phase of an iteration: the mean over the ranks. `work` is
// that of work_of() with these factors.
void balance_ranks(WorkFactors& factors, const RankWork& work);

// Makes the main threads of these ranks no slower than the usual one of the others, the one with the median of the mean
// work. A rank with more work than that gets the usual rank's values in each phase in which it has more: the smallest
// one in the iteration in which its own is the smallest, and so on, so that iterations that are slow on all ranks stay
// so. Warm-up iterations stay as they are. Returns for each iteration after those what the usual rank's work is
// above that of a relieved one, in ns, mean over the relieved ranks. `sums` are those of the work. Cost: n log n in the
// iterations.
std::vector<double> relieve_ranks(WorkFactors& factors, const RankWork& work, const WorkSums& sums,
                                  const std::vector<std::size_t>& ranks, std::size_t warmup);

// By how much each rank's own work exceeds the median of all ranks, in ns: the sum over the phases of the iterations
// after the first `warmup`. Cost: a sort of the ranks for each phase of an iteration.
std::vector<double> excess_work(const RankWork& work, std::size_t warmup);

// How much later the last of `ranks` ranks would arrive in each iteration, in ns, than the last of those that were
// recorded: the further ranks draw their work from that of the recorded ones in all iterations after the first
// `warmup`. Noise that all ranks have together stays in its iteration. 0 where there are no further ranks. Cost: n log
// n in ranks × iterations.
std::vector<double> later_arrivals(const RankWork& work, std::size_t ranks, std::size_t warmup);

}  // namespace paceline::analysis
