// SPDX-License-Identifier: Apache-2.0
#include "analysis/graph/changed_work.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace paceline::analysis {
namespace changed_work_parts {

// Communication and idle depend on others.
bool is_own_work(std::size_t phase) {
  return phase != static_cast<std::size_t>(Phase::communication) && phase != static_cast<std::size_t>(Phase::idle);
}

PhaseWork unchanged() {
  PhaseWork factors;
  factors.fill(1);
  return factors;
}

std::size_t iterations_of(const RankWork& work) { return work.empty() ? 0 : work.front().size(); }

}  // namespace changed_work_parts

void WorkFactors::scale_phases(std::span<const Phase> phases, double factor) {
  for (const Phase phase : phases) phases_[static_cast<std::size_t>(phase)] *= factor;
  changed_ = true;
}

void WorkFactors::speed_up_groups(const std::vector<double>& factors) {
  groups_.clear();
  for (const double factor : factors) groups_.push_back(1 / factor);
  changed_ = true;
}

void WorkFactors::scale_rank(std::size_t rank, std::vector<PhaseWork> factors) {
  if (ranks_.size() <= rank) ranks_.resize(rank + 1);
  std::vector<PhaseWork>& of = ranks_[rank];
  of.resize(factors.size(), changed_work_parts::unchanged());
  for (std::size_t i = 0; i < of.size(); ++i) {
    for (std::size_t phase = 0; phase < phase_count; ++phase) of[i][phase] *= factors[i][phase];
  }
  changed_ = true;
}

double WorkFactors::scaled(const ReplayTrack& track, const ReplayItem& item) const {
  const auto phase = static_cast<std::size_t>(item.phase);
  double ns = item.ns;
  if (item.iteration >= 0) ns *= phases_[phase];
  ns *= group(item.group);
  const PhaseWork* of = track.main && item.iteration >= 0 ? of_rank(track.rank) : nullptr;
  return of == nullptr ? ns : ns * of[item.iteration][phase];
}

RankWork work_of(const ReplayProgram& program, const WorkFactors& factors) {
  RankWork work(program.ranks, std::vector<PhaseWork>(program.iterations.size()));
  for (const ReplayTrack& track : program.tracks) {
    if (!track.main) continue;
    for (const ReplayItem& item : *track.items) {
      if (item.what != ReplayItem::work || item.iteration < 0) continue;
      work[track.rank][static_cast<std::size_t>(item.iteration)][static_cast<std::size_t>(item.phase)] +=
          factors.scaled(track, item);
    }
  }
  return work;
}

void scale_work(ReplayProgram& program, const WorkFactors& factors) {
  for (ReplayTrack& track : program.tracks) {
    const auto stays = [&](const ReplayItem& item) {
      return item.what != ReplayItem::work || factors.scaled(track, item) == item.ns;
    };
    if (std::ranges::all_of(*track.items, stays)) continue;
    for (ReplayItem& item : track.items.own()) {
      if (item.what == ReplayItem::work) item.ns = factors.scaled(track, item);
    }
  }
}

void balance_ranks(WorkFactors& factors, const RankWork& work) {
  using namespace changed_work_parts;
  std::vector<double> values(work.size());
  RankWork fresh(work.size(), std::vector<PhaseWork>(iterations_of(work), unchanged()));
  for (std::size_t i = 0; i < iterations_of(work); ++i) {
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      if (!is_own_work(phase)) continue;
      for (std::size_t r = 0; r < work.size(); ++r) values[r] = work[r][i][phase];
      const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
      for (std::size_t r = 0; r < work.size(); ++r) {
        if (values[r] > 0) fresh[r][i][phase] = mean / values[r];
      }
    }
  }
  for (std::size_t r = 0; r < work.size(); ++r) factors.scale_rank(r, std::move(fresh[r]));
}

WorkSums sums_of(const RankWork& work, std::size_t warmup) {
  WorkSums sums{std::vector<PhaseWork>(work.size(), PhaseWork{}), std::vector<double>(work.size())};
  for (std::size_t r = 0; r < work.size(); ++r) {
    for (std::size_t i = warmup; i < work[r].size(); ++i) {
      for (std::size_t phase = 0; phase < phase_count; ++phase) {
        if (changed_work_parts::is_own_work(phase)) sums.phases[r][phase] += work[r][i][phase];
      }
    }
    for (const double of_phase : sums.phases[r]) sums.totals[r] += of_phase;
  }
  return sums;
}

std::vector<double> relieve_ranks(WorkFactors& factors, const RankWork& work, const WorkSums& sums,
                                  const std::vector<std::size_t>& ranks, std::size_t warmup) {
  using namespace changed_work_parts;
  const std::size_t count = iterations_of(work);
  std::vector<double> moved(count > warmup ? count - warmup : 0);
  if (moved.empty()) return moved;
  const std::vector<double>& totals = sums.totals;
  std::vector<std::size_t> others;
  for (std::size_t r = 0; r < work.size(); ++r) {
    if (std::ranges::find(ranks, r) == ranks.end()) others.push_back(r);
  }
  if (others.empty()) return moved;
  std::ranges::stable_sort(others, {}, [&](std::size_t r) { return totals[r]; });
  const std::size_t usual = others[(others.size() - 1) / 2];
  for (const std::size_t r : ranks) {
    if (totals[r] <= totals[usual]) continue;
    std::vector<PhaseWork> fresh(count, unchanged());
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      if (sums.phases[r][phase] <= sums.phases[usual][phase]) continue;
      std::vector<std::size_t> order(moved.size());
      std::iota(order.begin(), order.end(), warmup);
      std::vector<double> values;
      for (const std::size_t i : order) values.push_back(work[usual][i][phase]);
      std::ranges::sort(values);
      std::ranges::stable_sort(order, {}, [&](std::size_t i) { return work[r][i][phase]; });
      for (std::size_t place = 0; place < order.size(); ++place) {
        const std::size_t i = order[place];
        const double now = work[r][i][phase];
        if (now > 0) fresh[i][phase] = values[place] / now;
        moved[i - warmup] += (work[usual][i][phase] - now) / static_cast<double>(ranks.size());
      }
    }
    factors.scale_rank(r, std::move(fresh));
  }
  return moved;
}

std::vector<double> excess_work(const RankWork& work, std::size_t warmup) {
  using namespace changed_work_parts;
  std::vector<double> excess(work.size()), values(work.size());
  for (std::size_t i = warmup; i < iterations_of(work); ++i) {
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      if (!is_own_work(phase)) continue;
      for (std::size_t r = 0; r < work.size(); ++r) values[r] = work[r][i][phase];
      std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(work.size() / 2));
      const double median = values[work.size() / 2];
      for (std::size_t r = 0; r < work.size(); ++r) excess[r] += std::max(work[r][i][phase] - median, 0.0);
    }
  }
  return excess;
}

std::vector<double> later_arrivals(const RankWork& work, std::size_t ranks, std::size_t warmup) {
  using namespace changed_work_parts;
  const std::size_t count = iterations_of(work);
  std::vector<double> later(count);
  if (ranks <= work.size() || count < warmup + 2) return later;
  const auto n = static_cast<double>(count - warmup), recorded = static_cast<double>(work.size());
  std::vector<std::vector<double>> sums(work.size(), std::vector<double>(count));
  std::vector<double> of_all(count);  // mean over the ranks
  double mean = 0;
  for (std::size_t r = 0; r < work.size(); ++r) {
    for (std::size_t i = warmup; i < count; ++i) {
      for (std::size_t phase = 0; phase < phase_count; ++phase) {
        if (is_own_work(phase)) sums[r][i] += work[r][i][phase];
      }
      of_all[i] += sums[r][i] / recorded;
    }
  }
  for (std::size_t i = warmup; i < count; ++i) mean += of_all[i] / n;
  // The part of the noise that all ranks have together: the variance of their mean beyond that of independent ranks.
  double between = 0, within = 0;
  for (std::size_t r = 0; r < work.size(); ++r) {
    double own = 0;
    for (std::size_t i = warmup; i < count; ++i) own += sums[r][i] / n;
    for (std::size_t i = warmup; i < count; ++i) within += std::pow(sums[r][i] - own - of_all[i] + mean, 2);
  }
  for (std::size_t i = warmup; i < count; ++i) between += std::pow(of_all[i] - mean, 2) / (n - 1);
  within /= std::max(recorded - 1, 1.0) * (n - 1);
  const double shared = between > 0 ? std::max(1 - within / recorded / between, 0.0) : 0;
  std::vector<double> pool;
  for (const auto& of_rank : sums) {
    for (std::size_t i = warmup; i < count; ++i) pool.push_back(of_rank[i] - shared * (of_all[i] - mean));
  }
  std::ranges::sort(pool);
  const double further = static_cast<double>(ranks) - recorded;
  for (std::size_t i = warmup; i < count; ++i) {
    // The largest of n draws from the pool is its quantile u^(1/n). Multiples of the golden ratio spread u evenly
    // over 0 to 1.
    const double u = std::fmod(0.5 + 0.6180339887498949 * static_cast<double>(i), 1);
    const double place = std::pow(u, 1 / further) * static_cast<double>(pool.size());
    const double largest = pool[std::min(static_cast<std::size_t>(place), pool.size() - 1)];
    double last = sums[0][i];
    for (const auto& of_rank : sums) last = std::max(last, of_rank[i]);
    later[i] = std::max(largest + shared * (of_all[i] - mean) - last, 0.0);
  }
  return later;
}

}  // namespace paceline::analysis
