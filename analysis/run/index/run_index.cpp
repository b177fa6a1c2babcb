// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/index/run_index.h"

#include <utility>

#include "analysis/communication/range_collectives.h"
#include "analysis/phases/losses.h"
#include "analysis/trace/parallel.h"

namespace paceline::analysis {

RunIndex::RunIndex(const Trace& trace) : table_(trace), parts_(trace.ranks.size()), calls_(trace.ranks.size()) {}

const std::vector<Iteration>& RunIndex::iterations(std::size_t rank) const {
  Part& part = parts_[rank];
  std::call_once(part.searched, [&] {
    const Rank& of = trace().ranks[rank];
    part.iterations = iterations_of(table_, of);
    const auto losses = main_thread_losses(of);
    if (parts_.size() > 1 && !losses.empty()) leave_out_miscounted(part.iterations, losses.front().start_ns);
  });
  return part.iterations;
}

std::vector<RunIteration> RunIndex::run_iterations() const {
  std::vector<RankIterations> ranks(parts_.size());
  parallel_for(ranks.size(), [&](std::size_t r) {
    const RankLosses losses = losses_of(trace().ranks[r]);
    ranks[r] = {iterations(r), losses.main_thread, losses.located};
  });
  return joined_iterations(ranks);
}

const Intervals& RunIndex::exposed(std::size_t rank) const {
  Part& part = parts_[rank];
  std::call_once(part.overlapped, [&] { part.exposed = gpu_activity(table_, trace().ranks[rank]).exposed(); });
  return part.exposed;
}

const std::vector<PhaseInterval>* RunIndex::kept_phases(std::size_t rank) const {
  constexpr std::size_t slices_per_interval = 8;  // at least, so that intervals take at most 3 bytes for each slice
  Part& part = parts_[rank];
  std::call_once(part.walked, [&] {
    const PhaseWalk walk(table_, trace().ranks[rank], exposed(rank));
    const std::size_t most = walk.slices().size() / slices_per_interval;
    std::vector<PhaseInterval> phases;
    std::size_t count = 0;
    analysis::each_phase_interval(table_, trace().ranks[rank], exposed(rank), [&](const PhaseInterval& interval) {
      if (++count <= most) phases.push_back(interval);
    });
    part.phases_kept = count <= most;
    if (part.phases_kept) part.phases = std::move(phases);
  });
  return part.phases_kept ? &part.phases : nullptr;
}

const RankTimes& RunIndex::times(std::size_t rank) const {
  std::call_once(parts_[rank].timed, [&] { measure(rank); });
  return parts_[rank].times;
}

void RunIndex::measure(std::size_t rank) const {
  const Rank& of = trace().ranks[rank];
  Part& part = parts_[rank];
  RankTimes& times = part.times;
  const GpuActivity gpu = gpu_activity(table_, of);
  std::call_once(part.overlapped, [&] { part.exposed = gpu.exposed(); });
  times.iterations = iterations(rank);
  IterationPhases of_iterations(times.iterations);
  InterludeWalk interludes(times.iterations);
  Intervals compute, working;
  each_phase_interval(rank, [&](const PhaseInterval& interval) {
    times.phase_ns[static_cast<std::size_t>(interval.phase)] += interval.end_ns - interval.start_ns;
    of_iterations.add(interval);
    interludes.add(interval);
    const TimeInterval time{interval.start_ns, interval.end_ns};
    if (is_compute(interval.phase)) compute.push_back(time);
    if (!works(interval.phase)) return;
    if (working.empty() || working.back().end_ns != time.start_ns) working.push_back(time);
    working.back().end_ns = time.end_ns;
  });
  times.interludes = interludes.take();
  times.exchanges = exchange_times(table_, of, compute, gpu);
  times.overlap = overlap_of(table_, of, std::move(compute), gpu);
  times.gpu = gpu_usage(gpu);
  calls_[rank] = collective_calls(trace(), of);
  add_range_calls(calls_[rank], trace(), of);
  cover(calls_[rank], std::move(working), gpu.compute);
}

const std::vector<CollectiveCalls>& RunIndex::calls() const {
  std::call_once(called_, [&] {
    parallel_for(parts_.size(), [&](std::size_t r) { times(r); });
    keep_common_ranges(calls_);
  });
  return calls_;
}

const Collectives& RunIndex::collectives() const {
  std::call_once(matched_, [&] { collectives_ = match_collectives(calls()); });
  return collectives_;
}

std::vector<CollectiveCalls> RunIndex::take_calls() {
  calls();
  return std::move(calls_);
}

}  // namespace paceline::analysis
