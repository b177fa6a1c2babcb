// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/lateness.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/communication/accusations.h"
#include "analysis/phases/selection.h"

namespace paceline::analysis {
namespace lateness_parts {

constexpr std::size_t fewest_irregular_ranks = 3;

// The iteration of each rank that a collective was begun in, where they have one number and all finished it.
const Iteration* common_iteration(const Collective& collective,
                                  std::span<const std::span<const Iteration>> iterations) {
  const Iteration* common = nullptr;
  for (const MemberCall& call : collective.calls) {
    const Iteration* of_rank = iteration_at(iterations[call.rank], call.start_ns);
    if (of_rank == nullptr || !of_rank->finished) return nullptr;
    if (common != nullptr && of_rank->number != common->number) return nullptr;
    common = of_rank;
  }
  return common;
}

std::vector<double> column_means(const std::vector<double>& values, std::size_t columns) {
  std::vector<double> means(columns);
  for (std::size_t i = 0; i < values.size(); ++i) means[i % columns] += values[i];
  const auto rows = static_cast<double>(values.size() / columns);
  for (double& mean : means) mean /= rows;
  return means;
}

void add_to(std::vector<double>& sums, std::span<const double> values) {
  sums.insert(sums.end(), values.begin(), values.end());
}

double mean_step_ns(const LatenessTable& table) {
  return std::accumulate(table.step_ns.begin(), table.step_ns.end(), 0.0) / static_cast<double>(table.iterations());
}

LatenessTest test_of(const LatenessTable& table, const BlockContrasts& contrasts) {
  return {.iterations = table.iterations(),
          .autocorrelation_time = contrasts.autocorrelation_time,
          .block = contrasts.block,
          .judged = contrasts.judged,
          .tests = contrasts.tests};
}

// The last arrival minus the last arrival without the rank: above 0 for the last rank of an iteration alone.
std::vector<double> held_up(const LatenessTable& table) {
  std::vector<double> held(table.late_ns.size());
  for (std::size_t i = 0; i < table.iterations(); ++i) {
    const std::span row = std::span(table.late_ns).subspan(i * table.ranks, table.ranks);
    const auto last = std::ranges::max_element(row);
    double before = -HUGE_VAL;
    for (auto other = row.begin(); other != row.end(); ++other) {
      if (other != last) before = std::max(before, *other);
    }
    held[i * table.ranks + static_cast<std::size_t>(last - row.begin())] = *last - before;
  }
  return held;
}

}  // namespace lateness_parts

void add_collective(LatenessRow& row, std::span<const double> arrivals, std::span<const double> waits) {
  const std::size_t ranks = arrivals.size(), half = ranks / 2;
  if (row.late_ns.empty()) row.late_ns.resize(ranks), row.behind_ns.resize(ranks), row.others_wait_ns.resize(ranks);
  // The values in the middle: `middle`, the one below it, and for an odd number of ranks the one above it.
  thread_local std::vector<double> sorted;
  sorted.assign(arrivals.begin(), arrivals.end());
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(sorted.begin(), at, sorted.end());
  const double middle = *at, below = *std::max_element(sorted.begin(), at);
  const double waited = std::accumulate(waits.begin(), waits.end(), 0.0);
  const auto others = static_cast<double>(ranks - 1);
  const bool odd = ranks % 2 == 1;
  const double above = odd ? *std::min_element(at + 1, sorted.end()) : middle;
  const double median = odd ? middle : 0.5 * (below + middle);
  for (std::size_t r = 0; r < ranks; ++r) {
    const double own = arrivals[r];
    // The median of the others: leave the own value out of the sorted ones.
    double of_others = own < middle ? middle : below;
    if (odd)
      of_others = own < middle ? 0.5 * (middle + above) : own > middle ? 0.5 * (below + middle) : 0.5 * (below + above);
    row.late_ns[r] += own - median;
    row.behind_ns[r] += own - of_others;
    row.others_wait_ns[r] += (waited - waits[r]) / others;
  }
  ++row.collectives;
}

void add_iteration(LatenessTable& table, std::int64_t number, const LatenessRow& row) {
  using namespace lateness_parts;
  const auto n = static_cast<double>(table.step_ns.size());
  table.ranks = row.late_ns.size();
  table.collectives = (table.collectives * n + static_cast<double>(row.collectives)) / (n + 1);
  add_to(table.late_ns, row.late_ns);
  add_to(table.behind_ns, row.behind_ns);
  add_to(table.others_wait_ns, row.others_wait_ns);
  table.step_ns.push_back(row.step_ns);
  table.numbers.push_back(number);
}

std::map<std::int64_t, LatenessRow> lateness_rows(const Collectives& collectives,
                                                  std::span<const std::span<const Iteration>> iterations) {
  using namespace lateness_parts;
  const std::size_t ranks = iterations.size();
  if (ranks < 2) return {};
  struct Common {
    std::size_t last = 0;  // index of the last awaited collective
    bool awaited = false;
    double step_ns = 0;
    std::vector<std::int64_t> waited_ns;
  };
  std::vector<bool> awaited(collectives.matched.size());
  for (const auto& of_rank : collectives.blocked) {
    for (const BlockedTime& interval : of_rank) awaited[interval.collective] = true;
  }
  std::map<std::int64_t, Common> commons;  // by the iteration's number
  std::vector<Common*> common_of(collectives.matched.size());
  for (std::size_t c = 0; c < collectives.matched.size(); ++c) {
    const Collective& collective = collectives.matched[c];
    if (!collective.timed || collective.calls.size() != ranks) continue;
    const Iteration* iteration = common_iteration(collective, iterations);
    if (iteration == nullptr) continue;
    Common& common = *(common_of[c] = &commons[iteration->number]);
    common.waited_ns.resize(ranks);
    common.step_ns = static_cast<double>(iteration->duration_ns);
    if (awaited[c] || !common.awaited) common.last = c, common.awaited = awaited[c];
  }
  for (std::size_t r = 0; r < collectives.blocked.size(); ++r) {
    for (const BlockedTime& interval : collectives.blocked[r]) {
      if (Common* common = common_of[interval.collective]) common->waited_ns[r] += interval.wait_ns();
    }
  }
  std::map<std::int64_t, LatenessRow> rows;
  std::vector<double> arrivals(ranks), waits(ranks);
  const Collective* before = nullptr;
  for (const auto& [number, common] : commons) {
    const Collective& last = collectives.matched[common.last];
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::int64_t arrival_ns = last.calls[r].start_ns;
      const std::int64_t zero_ns = (before != nullptr ? before->calls[r] : last.calls.front()).start_ns;
      const std::int64_t from_ns = before != nullptr ? zero_ns : iteration_at(iterations[r], arrival_ns)->start_ns;
      const std::int64_t blocked =
          r < collectives.blocked.size() ? blocked_ns(collectives.blocked[r], from_ns, arrival_ns) : 0;
      arrivals[r] = static_cast<double>(arrival_ns - zero_ns - blocked);
      waits[r] = static_cast<double>(common.waited_ns[r]);
    }
    before = &last;
    LatenessRow& row = rows[number];
    row.step_ns = common.step_ns;
    add_collective(row, arrivals, waits);
  }
  return rows;
}

LatenessTable lateness_of(const Collectives& collectives, std::span<const std::span<const Iteration>> iterations) {
  LatenessTable table;
  const std::map<std::int64_t, LatenessRow> rows = lateness_rows(collectives, iterations);
  if (iterations.size() > 1) table.ranks = iterations.size();
  std::size_t warmup = std::max<std::size_t>(1, rows.size() / 10);
  for (const auto& [number, row] : rows) {
    if (warmup > 0) {
      --warmup;
    } else {
      add_iteration(table, number, row);
    }
  }
  return table;
}

LatenessTest test_lateness(const LatenessTable& table, double clock_error_ns) {
  using namespace lateness_parts;
  const BlockContrasts contrasts = block_contrasts(table.late_ns, table.ranks);
  LatenessTest test = test_of(table, contrasts);
  if (contrasts.suspects.empty()) return test;
  const std::vector<double> waits = column_means(table.others_wait_ns, table.ranks);
  const double step = mean_step_ns(table);
  for (const auto& [rank, behind, p] : contrasts.suspects) {
    const double share = step > 0 ? std::min(behind, waits[rank]) / step : 0;
    if (share <= least_lateness_cost || behind <= table.collectives * clock_error_ns) continue;
    test.late.push_back({.rank = rank, .behind_ns = behind, .share_of_step = share, .p_alone = p});
  }
  std::ranges::stable_sort(test.late, std::ranges::greater{}, &LateRank::share_of_step);
  correct_for_all(std::array{Accuser{.late = &test}});
  return test;
}

LatenessTest test_irregularity(const LatenessTable& table, const LatenessTest& late) {
  using namespace lateness_parts;
  LatenessTest test;
  test.iterations = table.iterations();
  if (table.ranks < fewest_irregular_ranks || !late.judged) return test;
  std::vector<std::uint32_t> slow;
  for (const LateRank& each : late.late) slow.push_back(each.rank);
  const std::vector<double> held = held_up(table);
  const BlockContrasts contrasts = block_contrasts(held, table.ranks, slow);
  test = test_of(table, contrasts);
  if (!test.judged || test.tests < fewest_irregular_ranks) return test;
  const BlockContrasts lateness = block_contrasts(table.late_ns, table.ranks, slow);
  const std::vector<double> costs = column_means(held, table.ranks);
  const double step = mean_step_ns(table);
  for (const auto& [rank, above, p] : contrasts.suspects) {
    const bool perhaps_slow = std::ranges::find(lateness.suspects, rank, &Suspect::column) != lateness.suspects.end();
    const double share = step > 0 ? costs[rank] / step : 0;
    if (perhaps_slow || share <= least_lateness_cost) continue;
    test.late.push_back({.rank = rank, .behind_ns = costs[rank], .share_of_step = share, .p_alone = p});
  }
  std::ranges::stable_sort(test.late, std::ranges::greater{}, &LateRank::share_of_step);
  correct_for_all(std::array{Accuser{.late = &test}});
  return test;
}

}  // namespace paceline::analysis
