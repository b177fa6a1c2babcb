#include "analysis/metrics/lateness.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "analysis/metrics/selection.h"

namespace paceline::analysis {
namespace {

constexpr double block_times = 3;  // length of a block, in autocorrelation times
constexpr std::size_t most_blocks = 200;
constexpr std::size_t most_permutations = 1999, fewest_permutations = 399;

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

struct LatenessRow {
  std::vector<double> late, behind, others_wait;
  double step = 0;
  std::size_t collectives = 0;
};

void add_arrivals(const Collective& collective, LatenessRow& row) {
  const std::size_t ranks = collective.calls.size();
  const auto first = static_cast<double>(collective.calls.front().start_ns);
  std::vector<double> arrivals, waits;
  for (const MemberCall& call : collective.calls) {
    arrivals.push_back(static_cast<double>(call.start_ns) - first);
    waits.push_back(static_cast<double>(collective.wait_ns(call)));
  }
  std::vector<double> sorted = arrivals;
  std::ranges::sort(sorted);
  const double median = ranks % 2 == 1 ? sorted[ranks / 2] : 0.5 * (sorted[ranks / 2 - 1] + sorted[ranks / 2]);
  const double waited = std::accumulate(waits.begin(), waits.end(), 0.0);
  for (std::size_t r = 0; r < ranks; ++r) {
    row.late[r] += arrivals[r] - median;
    // The median of the others: leave one value out of the sorted ones.
    const auto at = static_cast<std::size_t>(std::ranges::lower_bound(sorted, arrivals[r]) - sorted.begin());
    const auto other = [&](std::size_t i) { return sorted[i < at ? i : i + 1]; };
    const std::size_t others = ranks - 1;
    const double behind = others % 2 == 1 ? other(others / 2) : 0.5 * (other(others / 2 - 1) + other(others / 2));
    row.behind[r] += arrivals[r] - behind;
    row.others_wait[r] += (waited - waits[r]) / static_cast<double>(others);
  }
  ++row.collectives;
}

std::vector<double> column_means(const std::vector<double>& values, std::size_t columns) {
  std::vector<double> means(columns);
  for (std::size_t i = 0; i < values.size(); ++i) means[i % columns] += values[i];
  const auto rows = static_cast<double>(values.size() / columns);
  for (double& mean : means) mean /= rows;
  return means;
}

// Over all ranks together: each one's lateness about its own mean.
double lateness_autocorrelation_time(const LatenessTable& table) {
  const std::size_t n = table.iterations(), ranks = table.ranks;
  std::vector<double> centred = table.late_ns;
  const std::vector<double> means = column_means(centred, ranks);
  for (std::size_t i = 0; i < centred.size(); ++i) centred[i] -= means[i % ranks];
  const auto covariance = [&](std::size_t lag) {
    double sum = 0;
    for (std::size_t i = 0; i + lag * ranks < centred.size(); ++i) sum += centred[i] * centred[i + lag * ranks];
    return sum;
  };
  const double variance = covariance(0);
  if (!(variance > 0)) return 1;
  double time = 1;
  for (std::size_t lag = 1; lag < n && static_cast<double>(lag) <= 5 * time; ++lag) {
    time += 2 * covariance(lag) / variance;
    if (time < 1) return 1;
  }
  return time;
}

// Sums over blocks of iterations, one row a block; the last block has what is left over.
std::vector<double> block_sums(const LatenessTable& table, std::size_t block, std::size_t blocks) {
  std::vector<double> sums(blocks * table.ranks);
  for (std::size_t i = 0; i < table.iterations(); ++i) {
    const std::size_t b = std::min(i / block, blocks - 1);
    for (std::size_t r = 0; r < table.ranks; ++r) sums[b * table.ranks + r] += table.late_ns[i * table.ranks + r];
  }
  return sums;
}

// Returns, sorted, the largest sum over ranks after each permutation.
std::vector<double> largest_by_chance(std::vector<double> sums, std::size_t ranks, std::size_t permutations) {
  std::mt19937_64 random(20220613);
  std::vector<double> largest;
  largest.reserve(permutations);
  std::vector<double> totals(ranks);
  for (std::size_t p = 0; p < permutations; ++p) {
    std::ranges::fill(totals, 0.0);
    for (std::size_t row = 0; row < sums.size(); row += ranks) {
      for (std::size_t r = ranks; r-- > 0;) {  // Fisher–Yates
        std::swap(sums[row + r], sums[row + random() % (r + 1)]);
        totals[r] += sums[row + r];
      }
    }
    largest.push_back(*std::ranges::max_element(totals));
  }
  std::ranges::sort(largest);
  return largest;
}

}  // namespace

LatenessTable lateness_of(const Collectives& collectives, std::span<const std::span<const Iteration>> iterations) {
  LatenessTable table;
  const std::size_t ranks = iterations.size();
  if (ranks < 2) return table;
  std::map<std::int64_t, LatenessRow> rows;
  for (const Collective& collective : collectives.matched) {
    if (!collective.timed || collective.calls.size() != ranks) continue;
    const Iteration* iteration = common_iteration(collective, iterations);
    if (iteration == nullptr) continue;
    LatenessRow& row = rows[iteration->number];
    if (row.late.empty()) row.late.resize(ranks), row.behind.resize(ranks), row.others_wait.resize(ranks);
    row.step = static_cast<double>(iteration->duration_ns);
    add_arrivals(collective, row);
  }
  table.ranks = ranks;
  std::size_t warmup = std::max<std::size_t>(1, rows.size() / 10);
  std::size_t count = 0;
  for (const auto& [number, row] : rows) {
    if (warmup > 0) {
      --warmup;
      continue;
    }
    table.late_ns.insert(table.late_ns.end(), row.late.begin(), row.late.end());
    table.behind_ns.insert(table.behind_ns.end(), row.behind.begin(), row.behind.end());
    table.others_wait_ns.insert(table.others_wait_ns.end(), row.others_wait.begin(), row.others_wait.end());
    table.step_ns.push_back(row.step);
    table.numbers.push_back(number);
    count += row.collectives;
  }
  if (!table.step_ns.empty()) {
    table.collectives = static_cast<double>(count) / static_cast<double>(table.step_ns.size());
  }
  return table;
}

LatenessTest test_lateness(const LatenessTable& table, double clock_error_ns) {
  LatenessTest test;
  test.iterations = table.iterations();
  if (table.ranks < 2 || test.iterations < 2) return test;
  test.autocorrelation_time = lateness_autocorrelation_time(table);
  const auto n = static_cast<double>(test.iterations);
  if (n < least_lateness_times * test.autocorrelation_time) return test;
  test.block = static_cast<std::size_t>(std::ceil(block_times * test.autocorrelation_time));
  test.block = std::max(test.block, (test.iterations + most_blocks - 1) / most_blocks);
  const std::size_t blocks = test.iterations / test.block;
  // All blocks permuted alike give the observed maximum again, which bounds p from below.
  const double rarest = -(static_cast<double>(blocks) - 1) * std::lgamma(static_cast<double>(table.ranks) + 1);
  if (rarest > std::log(lateness_level)) return test;
  test.judged = true;

  const std::size_t cost = blocks * table.ranks;
  const std::size_t permutations = std::clamp(50'000'000 / cost, fewest_permutations, most_permutations);
  const std::vector<double> sums = block_sums(table, test.block, blocks);
  const std::vector<double> chance = largest_by_chance(sums, table.ranks, permutations);
  const std::vector<double> late = column_means(table.late_ns, table.ranks);
  const std::vector<double> behind = column_means(table.behind_ns, table.ranks);
  const std::vector<double> waits = column_means(table.others_wait_ns, table.ranks);
  const double step = std::accumulate(table.step_ns.begin(), table.step_ns.end(), 0.0) / n;
  for (std::size_t r = 0; r < table.ranks; ++r) {
    const double sum = late[r] * n * (1 - 1e-9);  // rounding must not make an equal sum larger
    const auto above = static_cast<double>(chance.end() - std::ranges::lower_bound(chance, sum));
    const double p = (1 + above) / (1 + static_cast<double>(permutations));
    const double share = step > 0 ? std::min(behind[r], waits[r]) / step : 0;
    const bool beyond_clocks = behind[r] > table.collectives * clock_error_ns;
    if (late[r] > 0 && p < lateness_level && share > least_lateness_cost && beyond_clocks) {
      test.late.push_back({static_cast<std::uint32_t>(r), behind[r], share, p});
    }
  }
  std::ranges::stable_sort(test.late, std::ranges::greater{}, &LateRank::behind_ns);
  return test;
}

}  // namespace paceline::analysis
