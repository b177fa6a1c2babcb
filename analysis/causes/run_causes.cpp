// SPDX-License-Identifier: Apache-2.0
#include "analysis/causes/run_causes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "analysis/causes/collective_losses.h"
#include "analysis/causes/function_excess.h"
#include "analysis/causes/range_excess.h"
#include "analysis/phases/selection.h"
#include "analysis/trace/parallel.h"

namespace paceline::analysis {
namespace run_cause_parts {

// The iteration of this number; nullptr if not all ranks finished it.
IterationCauses* numbered(std::vector<IterationCauses>& iterations, const Iteration& iteration) {
  const auto found = std::ranges::lower_bound(iterations, iteration.number, {}, &IterationCauses::number);
  const bool is_there = iteration.finished && found != iterations.end() && found->number == iteration.number;
  return is_there ? &*found : nullptr;
}

// The mean over the iterations with these numbers: parts and duration.
struct Mean {
  LossParts parts;
  double duration_ns = 0, count = 0;
};

Mean mean_of(const std::vector<IterationCauses>& iterations, std::span<const std::int64_t> numbers) {
  Mean mean;
  for (const IterationCauses& iteration : iterations) {
    if (!std::ranges::binary_search(numbers, iteration.number)) continue;
    mean.parts.add(iteration.parts);
    mean.duration_ns += iteration.duration_ns;
    ++mean.count;
  }
  if (mean.count == 0) return mean;
  for (double& ns : mean.parts.ns) ns /= mean.count;
  mean.duration_ns /= mean.count;
  return mean;
}

std::optional<LongerCauses> longer_causes(const std::vector<IterationCauses>& iterations, const IterationSets& sets) {
  const Mean longer = mean_of(iterations, sets.longer), others = mean_of(iterations, sets.usual);
  const double excess_ns = longer.duration_ns - others.duration_ns;
  if (longer.count == 0 || others.count == 0 || excess_ns <= 0) return std::nullopt;
  const auto count = static_cast<double>(sets.longer.size());
  LongerCauses causes{.numbers = sets.longer, .excess_ns = excess_ns * count, .parts = {}};
  causes.parts.add(excess_parts(longer.parts, others.parts, excess_ns), count);
  return causes;
}

// How long the others waited for each rank in the longer iterations and in the usual ones.
class WaitedFor {
 public:
  WaitedFor(const IterationSets& sets, std::size_t ranks) : sets_(sets), longer_ns_(ranks), usual_ns_(ranks) {}

  void add(std::int64_t number, std::size_t rank, double ns) {
    if (std::ranges::binary_search(sets_.longer, number)) {
      longer_ns_[rank] += ns;
    } else if (std::ranges::binary_search(sets_.usual, number)) {
      usual_ns_[rank] += ns;
    }
  }

  // The rank for which the others waited most of what the iterations took longer.
  std::optional<std::size_t> most_of(double excess_ns) const {
    constexpr double most = 2.0 / 3;
    const std::size_t ranks = longer_ns_.size();
    const double usual = static_cast<double>(sets_.longer.size()) / static_cast<double>(sets_.usual.size());
    for (std::size_t r = 0; r < ranks; ++r) {
      const double longer_ns = longer_ns_[r] - usual * usual_ns_[r];
      if (ranks > 1 && longer_ns >= most * excess_ns * static_cast<double>(ranks - 1)) return r;
    }
    return std::nullopt;
  }

 private:
  const IterationSets& sets_;
  std::vector<double> longer_ns_, usual_ns_;  // by rank
};

std::optional<OtherProgram> busiest_program(const Trace& trace) {
  std::optional<OtherProgram> busiest;
  for (const Rank& rank : trace.ranks) {
    OtherProgram of_rank;
    for (const Track& track : rank.tracks) {
      const Samples& samples = track.samples;
      if (track.kind != TrackKind::counter || samples.name != "CPUs used by another program") continue;
      double cpu_s = 0;
      for (std::size_t i = 1; i < samples.size(); ++i) {
        cpu_s += 1e-9 * samples.value[i - 1] * static_cast<double>(samples.time_ns[i] - samples.time_ns[i - 1]);
      }
      of_rank.all_s += cpu_s;
      if (cpu_s > of_rank.cpu_s) of_rank.name = samples.device, of_rank.cpu_s = cpu_s;
    }
    if (of_rank.all_s > (busiest ? busiest->all_s : 0)) busiest = of_rank;
  }
  return busiest;
}

// Each iteration with the time since the one before it, in which a rank may evaluate or save a checkpoint.
std::vector<Iteration> with_time_before(std::span<const Iteration> iterations) {
  std::vector<Iteration> longer(iterations.begin(), iterations.end());
  for (std::size_t i = 1; i < longer.size(); ++i) {
    const std::int64_t start_ns = iterations[i - 1].start_ns + iterations[i - 1].duration_ns;
    longer[i].duration_ns += longer[i].start_ns - start_ns;
    longer[i].start_ns = start_ns;
  }
  return longer;
}

constexpr std::size_t most_slices = 2'000'000;  // of a main thread whose ranges are looked at

// Finds where and in which functions the time was lost.
class Places {
 public:
  Places(const RunIndex& index, const std::vector<RankActivity>& activities,
         std::span<const std::span<const Iteration>> iterations)
      : index_(index), trace_(index.trace()), activities_(activities) {
    for (std::size_t r = 0; r < trace_.ranks.size(); ++r) {
      iterations_.push_back(with_time_before(iterations[r]));
      const Track* main = main_track(trace_.ranks[r]);
      has_ranges_ = has_ranges_ && main != nullptr && main->slices.size() <= most_slices;
      has_samples_ = has_samples_ || (main != nullptr && main->stacks.size() > 0);
    }
  }

  // Of the ranks `named`, and of those for which the others waited longest: each one is compared with all the others.
  void add(std::vector<RankCauses>& ranks, std::vector<std::size_t> named) const {
    constexpr std::size_t most_compared = 4;
    const std::size_t n = ranks.size();
    if (n < 2) return;
    std::vector<std::size_t> by_wait(n);
    std::iota(by_wait.begin(), by_wait.end(), std::size_t{0});
    std::ranges::stable_sort(by_wait, std::greater(), [&](std::size_t r) { return ranks[r].caused.sum(); });
    named.insert(named.end(), by_wait.begin(),
                 by_wait.begin() + static_cast<std::ptrdiff_t>(std::min(n, most_compared)));
    std::ranges::sort(named);
    named.erase(std::unique(named.begin(), named.end()), named.end());
    std::vector<RangeProfile> profiles(n);
    if (has_ranges_) {
      parallel_for(n, [&](std::size_t r) { profiles[r] = profile(r, [](const Iteration&) { return true; }); });
    }
    for (const std::size_t r : named) {
      if (ranks[r].caused.sum() <= 0) continue;
      if (has_ranges_) {
        std::vector<RangeProfile> others = profiles;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(r));
        ranks[r].place = largest_excess(trace_, profiles[r], mean_profile(others));
      }
      if (has_samples_) ranks[r].function = late_function(r, ranks[r].caused.sum() / static_cast<double>(n - 1));
    }
  }

  // In all ranks, or in the one that made the iterations longer.
  void add(LongerCauses& causes, const IterationSets& sets, std::optional<std::size_t> rank) const {
    std::vector<std::size_t> chosen(iterations_.size());
    std::iota(chosen.begin(), chosen.end(), std::size_t{0});
    if (rank) {
      chosen = {*rank};
      causes.rank = trace_.ranks[*rank].rank;
    }
    const auto in = [](const std::vector<std::int64_t>& numbers) {
      return [&](const Iteration& iteration) { return std::ranges::binary_search(numbers, iteration.number); };
    };
    if (has_ranges_) {
      std::vector<RangeProfile> longer, usual;
      for (const std::size_t r : chosen) {
        longer.push_back(profile(r, in(sets.longer)));
        usual.push_back(profile(r, in(sets.usual)));
      }
      causes.place = largest_excess(trace_, mean_profile(longer), mean_profile(usual));
    }
    if (!has_samples_) return;
    std::vector<std::int64_t> numbers = sets.longer;
    numbers.insert(numbers.end(), sets.usual.begin(), sets.usual.end());
    std::ranges::sort(numbers);
    FunctionTimes times(trace_);
    for (const std::size_t r : chosen) {
      times.add(trace_.ranks[r], blocked(r), iterations_[r], 1 / static_cast<double>(chosen.size()),
                [&](const Iteration& iteration) { return row_of(numbers, iteration); });
    }
    std::vector<bool> slow;
    for (const std::int64_t number : numbers) slow.push_back(std::ranges::binary_search(sets.longer, number));
    causes.function = times.of_slow_iterations(slow);
    if (causes.function) causes.function->share *= static_cast<double>(sets.longer.size()) / causes.excess_ns;
  }

 private:
  std::span<const BlockedTime> blocked(std::size_t rank) const {
    const auto& all = index_.collectives().blocked;
    return rank < all.size() ? std::span<const BlockedTime>(all[rank]) : std::span<const BlockedTime>();
  }
  template <class Chosen>
  RangeProfile profile(std::size_t r, Chosen&& chosen) const {
    return range_profile(index_.phases(), trace_, trace_.ranks[r], activities_[r], blocked(r), iterations_[r], chosen);
  }
  static std::ptrdiff_t row_of(const std::vector<std::int64_t>& numbers, const Iteration& iteration) {
    const auto found = std::ranges::lower_bound(numbers, iteration.number);
    return found != numbers.end() && *found == iteration.number ? found - numbers.begin() : -1;
  }

  // The function in which a rank spent more time than the mean of the others. `caused_ns`: what another rank waited for
  // it in the whole run.
  std::optional<CauseFunction> late_function(std::size_t late, double caused_ns) const {
    std::vector<std::int64_t> numbers;
    for (const Iteration& iteration : iterations_[late]) {
      if (iteration.finished) numbers.push_back(iteration.number);
    }
    if (numbers.empty()) return std::nullopt;
    std::ranges::sort(numbers);
    FunctionTimes times(trace_);
    const auto others = static_cast<double>(iterations_.size() - 1);
    for (std::size_t r = 0; r < iterations_.size(); ++r) {
      times.add(trace_.ranks[r], blocked(r), iterations_[r], r == late ? 1 : -1 / others,
                [&](const Iteration& iteration) { return row_of(numbers, iteration); });
    }
    const double tau = 2;  // iterations
    const auto block = static_cast<std::size_t>(std::ceil(std::max(tau, static_cast<double>(numbers.size()) / 25)));
    auto function = times.of_late_rank(numbers.size(), block);
    if (function) function->share *= static_cast<double>(numbers.size()) / caused_ns;
    return function;
  }

  const RunIndex& index_;
  const Trace& trace_;
  const std::vector<RankActivity>& activities_;
  std::vector<std::vector<Iteration>> iterations_;  // each with the time before it
  bool has_ranges_ = true, has_samples_ = false;
};

}  // namespace run_cause_parts

LossParts RunCauses::mean() const {
  LossParts sum;
  for (const RankCauses& rank : ranks) sum.add(rank.lost(), 1 / static_cast<double>(ranks.size()));
  return sum;
}

std::optional<RunCauses> causes_of(const RunIndex& index, std::span<const std::int64_t> numbers,
                                   const IterationSets& slow, const IterationSets& changed,
                                   std::vector<std::size_t> named) {
  using namespace run_cause_parts;
  const Trace& trace = index.trace();
  const std::size_t ranks = trace.ranks.size();
  const Collectives& collectives = index.collectives();
  std::vector<RankActivity> activities(ranks);
  parallel_for(ranks, [&](std::size_t r) {
    std::span<const BlockedTime> blocked;
    if (r < collectives.blocked.size()) blocked = collectives.blocked[r];
    activities[r] = RankActivity(trace, trace.ranks[r], blocked);
  });
  if (std::ranges::none_of(activities, &RankActivity::known)) return std::nullopt;
  std::vector<const BlockedSamples*> samples;
  for (const RankActivity& activity : activities) samples.push_back(&activity.samples());
  const BlockedSamples of_all_ranks(samples);
  for (RankActivity& activity : activities) activity.add_samples(of_all_ranks);

  std::vector<std::span<const Iteration>> iterations;
  for (std::size_t r = 0; r < ranks; ++r) iterations.emplace_back(index.times(r).iterations);
  RunCauses causes{.ranks = std::vector<RankCauses>(ranks), .exact = true, .other_program = busiest_program(trace)};
  for (const std::int64_t number : numbers) causes.iterations.push_back({.number = number, .parts = {}});
  const double share = 1 / static_cast<double>(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    causes.exact = causes.exact && activities[r].states().exact;
    std::span<const BlockedTime> blocked;
    if (r < collectives.blocked.size()) blocked = collectives.blocked[r];
    for (const Iteration& iteration : iterations[r]) {
      const LossParts own =
          activities[r].parts_outside(blocked, iteration.start_ns, iteration.start_ns + iteration.duration_ns);
      for (const LossCause cause : {LossCause::no_cpu, LossCause::throttled}) {
        causes.ranks[r].own[cause] += own[cause];
      }
      if (IterationCauses* mean = numbered(causes.iterations, iteration)) {
        mean->parts.add(own, share);
        mean->duration_ns += share * static_cast<double>(iteration.duration_ns);
      }
    }
  }
  WaitedFor for_slow(slow, ranks), for_changed(changed, ranks);
  each_collective_loss(collectives, activities, iterations, [&](const CollectiveLoss& loss) {
    causes.ranks[loss.rank].waiting.add(loss.waiting);
    causes.ranks[loss.rank].transfer.add(loss.transfer);
    causes.ranks[collectives.matched[loss.interval.collective].last_rank].caused.add(loss.waiting);
    const auto of_rank = iterations[loss.rank];
    const Iteration* iteration = iteration_at(of_rank, loss.interval.start_ns);
    IterationCauses* mean = iteration == nullptr ? nullptr : numbered(causes.iterations, *iteration);
    if (mean == nullptr) return;
    for (WaitedFor* of : {&for_slow, &for_changed}) {
      of->add(mean->number, collectives.matched[loss.interval.collective].last_rank, loss.waiting.sum());
    }
    mean->parts.add(loss.waiting, share).add(loss.transfer, share);
    mean->computing_longer_ns += share * (loss.waiting[LossCause::computing] + loss.transfer[LossCause::computing]);
  });
  causes.slow = longer_causes(causes.iterations, slow);
  causes.changed = longer_causes(causes.iterations, changed);
  const Places places(index, activities, iterations);
  places.add(causes.ranks, std::move(named));
  if (causes.slow) places.add(*causes.slow, slow, for_slow.most_of(causes.slow->excess_ns));
  if (causes.changed) places.add(*causes.changed, changed, for_changed.most_of(causes.changed->excess_ns));
  return causes;
}

}  // namespace paceline::analysis
