#include "analysis/metrics/lateness.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "analysis/metrics/autocorrelation.h"
#include "analysis/metrics/selection.h"
#include "analysis/metrics/statistics.h"
#include "analysis/scaling/interval.h"

namespace paceline::analysis {
namespace lateness_parts {

constexpr double lateness_block_times = 2;  // length of a block, in autocorrelation times
// Places stay alike for longer than skewed noise itself. The run is known to be long enough by then.
constexpr double least_place_times = 10, place_block_times = 1;
constexpr std::size_t most_blocks = 100;
constexpr std::size_t most_permutations = 999, enough_exceeding = 20;
constexpr std::size_t fewest_ranks_for_places = 3;  // places of two ranks only have a sign
constexpr double least_chance_of_mean = 0.5;        // at which the places do not count
constexpr double explained_by_jump = 2.0 / 3;       // of the variance of a rank's lateness, which then jumps

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

// Subtracts the mean of a rank's lateness; where the rank becomes late or ceases to be late during the run, both means.
// Otherwise the jump itself would look like autocorrelation.
void centre(std::vector<double>& values, std::size_t rank, std::size_t ranks, double mean) {
  const std::size_t n = values.size() / ranks;
  double square = 0, sum = 0, largest = 0;
  std::size_t at = 0;
  double sum_at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double& value = values[i * ranks + rank];
    value -= mean;
    square += value * value;
    sum += value;
    const auto before = static_cast<double>(i + 1), after = static_cast<double>(n - i - 1);
    if (after == 0) break;
    const double explained = sum * sum * static_cast<double>(n) / (before * after);
    if (explained > largest) largest = explained, at = i + 1, sum_at = sum;
  }
  if (!(largest > explained_by_jump * square)) return;
  const double before = sum_at / static_cast<double>(at), after = -sum_at / static_cast<double>(n - at);
  for (std::size_t i = 0; i < n; ++i) values[i * ranks + rank] -= i < at ? before : after;
}

// Each rank's lateness about its own mean.
std::vector<double> centred_lateness(const LatenessTable& table, std::span<const double> means) {
  std::vector<double> centred = table.late_ns;
  for (std::size_t r = 0; r < table.ranks; ++r) centre(centred, r, table.ranks, means[r]);
  return centred;
}

// Sums over blocks of iterations, one row for each block. The last block contains what is left over.
std::vector<double> block_sums(std::span<const double> values, std::size_t ranks, std::size_t block,
                               std::size_t blocks) {
  std::vector<double> sums(blocks * ranks);
  for (std::size_t i = 0; i < values.size() / ranks; ++i) {
    const std::size_t b = std::min(i / block, blocks - 1);
    for (std::size_t r = 0; r < ranks; ++r) sums[b * ranks + r] += values[i * ranks + r];
  }
  return sums;
}

double sum_of_squares(std::span<const double> values) {
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

// xorshift64* (G. Marsaglia, "Xorshift RNGs", 2003; S. Vigna, 2016), a number below `limit` by multiplication.
struct Draws {
  std::uint64_t state = 20220613;
  std::uint64_t below(std::uint64_t limit) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return ((state * 0x2545F4914F6CDD1DU) >> 32) * limit >> 32;
  }
};

// Permutes the ranks within each block. Returns the largest sum over the ranks after each permutation, sorted. Each is
// divided by the root of the sum of squares of the blocks about the means of their ranks. Ends early when
// `enough_exceeding` of them reach `observed`, which is then not beyond chance.
std::vector<double> largest_by_chance(std::vector<double> sums, std::size_t ranks, double observed) {
  Draws draws;
  std::vector<double> largest, totals(ranks);
  const double squares = sum_of_squares(sums);
  const auto blocks = static_cast<double>(sums.size() / ranks);
  std::size_t exceeding = 0;
  while (largest.size() < most_permutations && exceeding < enough_exceeding) {
    std::ranges::fill(totals, 0.0);
    for (auto row = sums.begin(); row != sums.end(); row += static_cast<std::ptrdiff_t>(ranks)) {
      for (std::size_t r = ranks - 1; r > 0; --r) {  // Fisher–Yates
        std::swap(row[static_cast<std::ptrdiff_t>(r)], row[static_cast<std::ptrdiff_t>(draws.below(r + 1))]);
      }
      std::transform(totals.begin(), totals.end(), row, totals.begin(), std::plus<>());
    }
    const double within = std::max(squares - sum_of_squares(totals) / blocks, 1e-12 * squares);
    largest.push_back(within > 0 ? *std::ranges::max_element(totals) / std::sqrt(within) : 0);
    exceeding += largest.back() >= observed;
  }
  std::ranges::sort(largest);
  return largest;
}

void add_to(std::vector<double>& sums, std::span<const double> values) {
  sums.insert(sums.end(), values.begin(), values.end());
}

// One statistic of all ranks, and its largest values by chance.
struct Clearness {
  double autocorrelation_time = 1;
  std::size_t block = 1;
  bool judged = false;  // false: the run is too short, and the two vectors are empty
  std::vector<double> of_rank;
  std::vector<double> chance;  // sorted

  // The share of permutations in which some rank is at least as clear.
  double p(std::size_t rank) const {
    const auto above = static_cast<double>(chance.end() - std::ranges::lower_bound(chance, of_rank[rank]));
    return (1 + above) / (1 + static_cast<double>(chance.size()));
  }
};

// `means` are those of the ranks, `centred` the values about them. Blocks have at least `least_block` iterations. The
// run must have `least_times` autocorrelation times, and a block must have `block_times`.
Clearness clearness_of(const std::vector<double>& means, std::span<const double> centred, std::size_t least_block,
                       double least_times, double block_times) {
  const std::size_t ranks = means.size(), iterations = centred.size() / ranks;
  const auto n = static_cast<double>(iterations), columns = static_cast<double>(ranks);
  Clearness clearness;
  clearness.autocorrelation_time = autocorrelation_time(centred, 1, ranks);
  if (n < least_times * clearness.autocorrelation_time) return clearness;
  const auto long_enough = static_cast<std::size_t>(std::ceil(block_times * clearness.autocorrelation_time));
  clearness.block = std::max({least_block, long_enough, (iterations + most_blocks - 1) / most_blocks});
  const std::size_t blocks = iterations / clearness.block;
  // Few blocks have too few different permutations to show a chance as small as the level.
  const double rarest = -(static_cast<double>(blocks) - 1) * log_gamma(columns + 1);
  if (rarest > std::log(lateness_level)) return clearness;
  clearness.judged = true;
  // The length of the blocks is on the safe side; the variance that they leave out is estimated without a margin.
  const double time = autocorrelation_time(centred, 1, ranks, 0);
  std::vector<double> sums = block_sums(centred, ranks, clearness.block, blocks);
  const double error = std::sqrt(variance_beyond_blocks(time, clearness.block) * sum_of_squares(sums));
  // The mean over the ranks stays as it is in a permutation; only the distance from it counts.
  const double mean = std::accumulate(means.begin(), means.end(), 0.0) / columns;
  for (const double of_rank : means) {
    const double late = n * (of_rank - mean);
    clearness.of_rank.push_back(late > 0 && !(error > 0) ? HUGE_VAL : late > 0 ? late / error : 0);
  }
  clearness.chance = largest_by_chance(std::move(sums), ranks, *std::ranges::max_element(clearness.of_rank));
  return clearness;
}

// The places of the ranks in each iteration: from 0 for the first to arrive; equal ranks share the mean of their
// places.
std::vector<double> places_in_iterations(const LatenessTable& table) {
  std::vector<double> places;
  places.reserve(table.late_ns.size());
  for (std::size_t i = 0; i < table.iterations(); ++i) {
    add_to(places, places_of(std::span(table.late_ns).subspan(i * table.ranks, table.ranks)));
  }
  return places;
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

void add_last_awaited(LatenessRow& row, std::span<const RankArrival> ranks) {
  std::vector<double> arrivals, waits;
  for (const RankArrival& rank : ranks) {
    const std::int64_t since_ns = rank.arrival_ns - ranks.front().arrival_ns;
    arrivals.push_back(
        static_cast<double>(since_ns - blocked_ns(rank.blocked, rank.iteration_start_ns, rank.arrival_ns)));
    waits.push_back(static_cast<double>(rank.waited_ns));
  }
  add_collective(row, arrivals, waits);
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

LatenessTable lateness_of(const Collectives& collectives, std::span<const std::span<const Iteration>> iterations) {
  using namespace lateness_parts;
  LatenessTable table;
  const std::size_t ranks = iterations.size();
  if (ranks < 2) return table;
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
  std::vector<RankArrival> arrivals(ranks);
  for (const auto& [number, common] : commons) {
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::int64_t arrival_ns = collectives.matched[common.last].calls[r].start_ns;
      arrivals[r] = {iteration_at(iterations[r], arrival_ns)->start_ns, arrival_ns, common.waited_ns[r], {}};
      if (r < collectives.blocked.size()) arrivals[r].blocked = collectives.blocked[r];
    }
    LatenessRow& row = rows[number];
    row.step_ns = common.step_ns;
    add_last_awaited(row, arrivals);
  }
  table.ranks = ranks;
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
  LatenessTest test;
  test.iterations = table.iterations();
  if (table.ranks < 2 || test.iterations < 2) return test;
  const std::vector<double> late = column_means(table.late_ns, table.ranks);
  const Clearness by_mean =
      clearness_of(late, centred_lateness(table, late), 1, least_lateness_times, lateness_block_times);
  test.autocorrelation_time = by_mean.autocorrelation_time;
  test.block = by_mean.block;
  test.judged = by_mean.judged;
  if (!test.judged) return test;
  Clearness by_places;
  if (table.ranks >= fewest_ranks_for_places) {
    std::vector<double> places = places_in_iterations(table);
    const std::vector<double> means = column_means(places, table.ranks);
    for (std::size_t i = 0; i < places.size(); ++i) places[i] -= means[i % table.ranks];
    by_places = clearness_of(means, places, test.block, least_place_times, place_block_times);
  }
  const auto chance = [&](std::size_t r) {
    const double p = by_mean.p(r);
    return !by_places.judged || p >= least_chance_of_mean ? p : 2 * std::min(p, by_places.p(r));
  };

  const std::vector<double> behind = column_means(table.behind_ns, table.ranks);
  const std::vector<double> waits = column_means(table.others_wait_ns, table.ranks);
  const double step =
      std::accumulate(table.step_ns.begin(), table.step_ns.end(), 0.0) / static_cast<double>(test.iterations);
  const auto share = [&](std::size_t r) { return step > 0 ? std::min(behind[r], waits[r]) / step : 0; };
  for (std::size_t r = 0; r < table.ranks; ++r) {
    const double p = chance(r);
    const bool beyond_clocks = behind[r] > table.collectives * clock_error_ns;
    if (late[r] > 0 && p < lateness_level && share(r) > least_lateness_cost && beyond_clocks) {
      test.late.push_back({static_cast<std::uint32_t>(r), behind[r], share(r), p});
    }
  }
  std::ranges::stable_sort(test.late, std::ranges::greater{}, &LateRank::behind_ns);
  return test;
}

}  // namespace paceline::analysis
