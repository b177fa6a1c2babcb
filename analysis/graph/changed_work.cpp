// SPDX-License-Identifier: Apache-2.0
#include "analysis/graph/changed_work.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace paceline::analysis {
namespace changed_work_parts {

using PhaseWork = std::array<double, phase_count>;

// The work of main threads by rank and iteration.
std::vector<std::vector<PhaseWork>> work_of(const ReplayProgram& program) {
  std::vector<std::vector<PhaseWork>> work(program.ranks, std::vector<PhaseWork>(program.iterations.size()));
  for (const ReplayTrack& track : program.tracks) {
    if (!track.main) continue;
    for (const ReplayItem& item : *track.items) {
      if (item.what != ReplayItem::work || item.iteration < 0) continue;
      work[track.rank][static_cast<std::size_t>(item.iteration)][static_cast<std::size_t>(item.phase)] += item.ns;
    }
  }
  return work;
}

// Communication and idle depend on others.
bool is_own_work(std::size_t phase) {
  return phase != static_cast<std::size_t>(Phase::communication) && phase != static_cast<std::size_t>(Phase::idle);
}

// Scales the items that `factor(track, item)` is not 1 for. Tracks without them stay shared.
template <class Factor>
void scale(ReplayProgram& program, Factor&& factor) {
  for (ReplayTrack& track : program.tracks) {
    const auto of = [&](const ReplayItem& item) { return item.what == ReplayItem::work ? factor(track, item) : 1.0; };
    if (std::ranges::all_of(*track.items, [&](const ReplayItem& item) { return of(item) == 1; })) continue;
    for (ReplayItem& item : track.items.own()) item.ns *= of(item);
  }
}

// Multiplies the main threads' work by the factor of its rank, iteration and phase.
void scale_by(ReplayProgram& program, const std::vector<std::vector<PhaseWork>>& factors) {
  scale(program, [&](const ReplayTrack& track, const ReplayItem& item) {
    if (!track.main || item.iteration < 0) return 1.0;
    return factors[track.rank][static_cast<std::size_t>(item.iteration)][static_cast<std::size_t>(item.phase)];
  });
}

// Scales the main threads' work to `target(rank, values of all ranks)` in each phase of each iteration.
template <class Target>
void scale_to(ReplayProgram& program, Target&& target) {
  const auto work = work_of(program);
  std::vector<double> values(program.ranks);
  auto factors = work;
  for (std::size_t i = 0; i < program.iterations.size(); ++i) {
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      for (std::size_t r = 0; r < program.ranks; ++r) values[r] = work[r][i][phase];
      for (std::size_t r = 0; r < program.ranks; ++r) {
        const bool scaled = is_own_work(phase) && values[r] > 0;
        factors[r][i][phase] = scaled ? target(r, values) / values[r] : 1;
      }
    }
  }
  scale_by(program, factors);
}

}  // namespace changed_work_parts

void scale_phases(ReplayProgram& program, const std::vector<Phase>& phases, double factor) {
  changed_work_parts::scale(program, [&](const ReplayTrack&, const ReplayItem& item) {
    return item.iteration >= 0 && std::ranges::find(phases, item.phase) != phases.end() ? factor : 1;
  });
}

void speed_up_groups(ReplayProgram& program, const std::vector<double>& factors) {
  changed_work_parts::scale(program, [&](const ReplayTrack&, const ReplayItem& item) {
    return item.group > 0 ? 1 / factors[item.group - 1U] : 1;
  });
}

void balance_ranks(ReplayProgram& program) {
  changed_work_parts::scale_to(program, [](std::size_t, const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  });
}

std::vector<double> relieve_ranks(ReplayProgram& program, const std::vector<std::size_t>& ranks, std::size_t warmup) {
  using namespace changed_work_parts;
  const auto work = work_of(program);
  const std::size_t count = program.iterations.size();
  std::vector<double> moved(count > warmup ? count - warmup : 0);
  if (moved.empty()) return moved;
  std::vector<PhaseWork> means(program.ranks, PhaseWork{});
  std::vector<double> totals(program.ranks);
  std::vector<std::size_t> others;
  for (std::size_t r = 0; r < program.ranks; ++r) {
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      if (!is_own_work(phase)) continue;
      for (std::size_t i = warmup; i < count; ++i) means[r][phase] += work[r][i][phase];
      totals[r] += means[r][phase];
    }
    if (std::ranges::find(ranks, r) == ranks.end()) others.push_back(r);
  }
  if (others.empty()) return moved;
  std::ranges::stable_sort(others, {}, [&](std::size_t r) { return totals[r]; });
  const std::size_t usual = others[(others.size() - 1) / 2];
  auto factors = work;
  for (auto& of_rank : factors) {
    for (PhaseWork& of : of_rank) of.fill(1);
  }
  for (const std::size_t r : ranks) {
    if (totals[r] <= totals[usual]) continue;
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      if (means[r][phase] <= means[usual][phase]) continue;
      std::vector<std::size_t> order(moved.size());
      std::iota(order.begin(), order.end(), warmup);
      std::vector<double> values;
      for (const std::size_t i : order) values.push_back(work[usual][i][phase]);
      std::ranges::sort(values);
      std::ranges::stable_sort(order, {}, [&](std::size_t i) { return work[r][i][phase]; });
      for (std::size_t place = 0; place < order.size(); ++place) {
        const std::size_t i = order[place];
        const double now = work[r][i][phase];
        if (now > 0) factors[r][i][phase] = values[place] / now;
        moved[i - warmup] += (work[usual][i][phase] - now) / static_cast<double>(ranks.size());
      }
    }
  }
  scale_by(program, factors);
  return moved;
}

std::vector<double> excess_work(const ReplayProgram& program, std::size_t warmup) {
  using namespace changed_work_parts;
  const auto work = work_of(program);
  std::vector<double> excess(program.ranks), values(program.ranks);
  for (std::size_t i = warmup; i < program.iterations.size(); ++i) {
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      if (!is_own_work(phase)) continue;
      for (std::size_t r = 0; r < program.ranks; ++r) values[r] = work[r][i][phase];
      std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(program.ranks / 2));
      const double median = values[program.ranks / 2];
      for (std::size_t r = 0; r < program.ranks; ++r) excess[r] += std::max(work[r][i][phase] - median, 0.0);
    }
  }
  return excess;
}

std::vector<double> later_arrivals(const ReplayProgram& program, std::size_t ranks, std::size_t warmup) {
  using namespace changed_work_parts;
  const std::size_t count = program.iterations.size();
  std::vector<double> later(count);
  if (ranks <= program.ranks || count < warmup + 2) return later;
  const auto work = work_of(program);
  const auto n = static_cast<double>(count - warmup), recorded = static_cast<double>(program.ranks);
  std::vector<std::vector<double>> sums(program.ranks, std::vector<double>(count));
  std::vector<double> of_all(count);  // mean over the ranks
  double mean = 0;
  for (std::size_t r = 0; r < program.ranks; ++r) {
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
  for (std::size_t r = 0; r < program.ranks; ++r) {
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
