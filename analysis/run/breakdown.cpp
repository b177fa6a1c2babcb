// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/breakdown.h"

#include <algorithm>
#include <cmath>

#include "analysis/scaling/long_run.h"

namespace paceline::analysis {

CountsAs counts_as(Phase phase, bool inside_iterations, const BreakdownRules& rules) {
  switch (phase) {
    case Phase::forward:
    case Phase::backward:
    case Phase::preprocess:
    case Phase::copy:
    case Phase::launch:
      return CountsAs::parallel;
    case Phase::optimizer:
      return rules.global_batch_kept ? CountsAs::serial : CountsAs::parallel;
    case Phase::startup:
    case Phase::checkpoint:
      return CountsAs::serial;
    case Phase::evaluate:
      return rules.evaluate_on_all_ranks ? CountsAs::parallel : CountsAs::serial;
    case Phase::communication:
      if (rules.ranks > 1) return CountsAs::overhead;
      break;
    case Phase::idle:
    case Phase::other:
      break;
  }
  return inside_iterations ? CountsAs::parallel : CountsAs::serial;  // grows with the iterations, or is fixed
}

Breakdown break_down(std::span<const RankSummary> ranks, const BreakdownRules& rules) {
  Breakdown breakdown;
  std::array<std::array<std::int64_t, phase_count>, 2> sums{};  // [inside iterations][phase], over ranks
  for (const RankSummary& rank : ranks) {
    for (std::size_t p = 0; p < phase_count; ++p) {
      std::int64_t inside = 0;
      for (const auto& iteration : rank.iterations) inside += iteration.phase_ns[p];
      sums[1][p] += inside;
      sums[0][p] += rank.phase_ns[p] - inside;
    }
  }
  // Rounding the running sum, not each row, keeps the rows' sum equal to the rounded mean of the wall times.
  const auto n = static_cast<std::int64_t>(ranks.size());
  std::int64_t running = 0;
  const auto rounded = [n](std::int64_t sum) { return (2 * sum + n) / (2 * n); };
  for (const bool inside : {true, false}) {
    for (std::size_t p = 0; p < phase_count; ++p) {
      const std::int64_t before = rounded(running);
      running += sums[inside ? 1 : 0][p];
      const std::int64_t ns = rounded(running) - before;
      if (ns > 0) breakdown.rows.push_back({static_cast<Phase>(p), inside, CountsAs::parallel, ns});
    }
  }
  breakdown.wall_ns = n == 0 ? 0 : rounded(running);
  std::stable_sort(breakdown.rows.begin(), breakdown.rows.end(),
                   [](const BreakdownRow& a, const BreakdownRow& b) { return a.ns > b.ns; });
  classify(breakdown, rules, {});
  return breakdown;
}

void classify(Breakdown& breakdown, const BreakdownRules& rules, std::span<const double> steady_seconds) {
  breakdown.parallel_ns = breakdown.serial_ns = breakdown.overhead_ns = 0;
  std::int64_t serial_inside = 0;
  for (auto& row : breakdown.rows) {
    row.counts_as = counts_as(row.phase, row.inside_iterations, rules);
    switch (row.counts_as) {
      case CountsAs::parallel:
        breakdown.parallel_ns += row.ns;
        break;
      case CountsAs::serial:
        breakdown.serial_ns += row.ns;
        if (row.inside_iterations) serial_inside += row.ns;
        break;
      case CountsAs::overhead:
        breakdown.overhead_ns += row.ns;
        break;
    }
  }
  if (breakdown.wall_ns == 0) return;
  const double wall = static_cast<double>(breakdown.wall_ns), serial = static_cast<double>(breakdown.serial_ns);
  breakdown.serial_share = serial / wall;
  breakdown.serial_share_ci95.reset();
  const auto spread = mean_spread(steady_seconds);
  if (!spread || spread->mean <= 0) return;
  const double total = 1e9 * spread->mean * static_cast<double>(steady_seconds.size());
  const double most = t_quantile_two_sided(0.05, spread->degrees) * std::sqrt(spread->variance) / spread->mean;
  // Serial time inside iterations grows and shrinks with them. The share changes in one direction with their length.
  const auto share = [&](double longer) {
    return (serial + static_cast<double>(serial_inside) * longer) / (wall + total * longer);
  };
  const double a = share(-std::min(most, 1.0)), b = share(most);
  breakdown.serial_share_ci95 = Interval{std::min(a, b), std::max(a, b)};
}

}  // namespace paceline::analysis
