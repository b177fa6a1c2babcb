// SPDX-License-Identifier: Apache-2.0
#include "analysis/statistics/step_changes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "analysis/statistics/autocorrelation.h"
#include "analysis/statistics/block_contrasts.h"
#include "analysis/statistics/statistics.h"

namespace paceline::analysis {
namespace step_change_parts {

// Blocks as in block_contrasts.h: noise that comes in bursts stays alike for longer than its neighbours show.
constexpr double change_block_times = 2, usual_change_blocks = 25;
// Iterations on each side of a jump: a few, and a tenth of the run, because a burst of slow iterations is no change.
std::size_t least_beside(std::size_t iterations) { return std::max<std::size_t>(5, iterations / 10); }
constexpr std::size_t fewest_iterations = 30;  // fewer do not show how long their autocorrelation is
constexpr std::size_t most_change_permutations = 999, fewest_change_permutations = 199;
constexpr std::size_t enough_clearer = 20;  // permutations; the change is then not beyond chance
// A jump has one more free value than a line, its place, which follows some of the noise. By how much a jump must
// explain more than a line to be called one, and a line more than a jump: times the variance of the mean's noise.
constexpr double clear_jump = 10, clear_drift = 1;
constexpr double most_of_jump = 0.9;       // of what the best place of a jump explains
constexpr double change_work_limit = 2e7;  // iterations visited by all permutations

// The clearest jump and the drift of a series. The statistics are sums of squares that each explains, so they can be
// compared with each other.
struct Fit {
  std::size_t at = 0;
  double jump = 0, drift = 0;
  double clearest() const { return std::max(jump, drift); }
};

Fit fit_changes(std::span<const double> values) {
  const std::size_t n = values.size(), beside = least_beside(n);
  const auto count = static_cast<double>(n);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  Fit fit;
  double sum = 0, moment = 0;
  for (std::size_t i = 0; i < n; ++i) {
    moment += (static_cast<double>(i) - 0.5 * (count - 1)) * (values[i] - mean);
    sum += values[i] - mean;
    const auto before = static_cast<double>(i + 1);
    if (i + 1 < beside || n - i - 1 < beside) continue;
    const double explained = sum * sum * count / (before * (count - before));
    if (explained > fit.jump) fit.jump = explained, fit.at = i + 1;
  }
  fit.drift = moment * moment * 12 / (count * (count * count - 1));
  return fit;
}

// What a jump at this index explains.
double explained_at(std::span<const double> values, std::size_t at) {
  const auto count = static_cast<double>(values.size()), before = static_cast<double>(at);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  const double sum = std::accumulate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), -before * mean);
  return sum * sum * count / (before * (count - before));
}

StepChange::Kind kind_of(const Fit& fit, double noise) {
  if (fit.at == 0) return StepChange::Kind::drift;  // constant values: there is no best place
  if (fit.jump - fit.drift > clear_jump * noise) return StepChange::Kind::jump;
  return fit.drift - fit.jump > clear_drift * noise ? StepChange::Kind::drift : StepChange::Kind::unclear;
}

StepChange describe(std::span<const double> values, const Fit& fit, StepChange::Kind kind) {
  const std::size_t n = values.size();
  if (kind != StepChange::Kind::drift) {
    return {.kind = kind, .at = fit.at, .before = mean(values.first(fit.at)), .after = mean(values.subspan(fit.at))};
  }
  const auto count = static_cast<double>(n);
  const double middle = mean(values);
  double moment = 0;
  for (std::size_t i = 0; i < n; ++i) moment += (static_cast<double>(i) - 0.5 * (count - 1)) * (values[i] - middle);
  const double half = moment * 12 / (count * (count * count - 1)) * 0.5 * (count - 1);
  return {.kind = kind, .at = 0, .before = middle - half, .after = middle + half};
}

std::vector<double> residuals(std::span<const double> values, const StepChange& change) {
  std::vector<double> rest(values.begin(), values.end());
  const double slope = (change.after - change.before) / static_cast<double>(values.size() - 1);
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (change.kind != StepChange::Kind::drift) {
      rest[i] -= i < change.at ? change.before : change.after;
    } else {
      rest[i] -= change.before + slope * static_cast<double>(i);
    }
  }
  return rest;
}

double variance_sum(std::span<const double> centred) {
  return std::inner_product(centred.begin(), centred.end(), centred.begin(), 0.0);
}

// The share of permutations of the blocks that have a change at least as clear. Ends early where they are many.
double chance_of_change(std::span<const double> values, std::size_t block, double clearest, std::size_t permutations) {
  std::vector<std::size_t> starts;
  for (std::size_t start = 0; start < values.size(); start += block) starts.push_back(start);
  std::mt19937_64 random(20220613);
  std::vector<double> permuted;
  permuted.reserve(values.size());
  std::size_t clearer = 0, tried = 0;
  for (; tried < permutations && clearer < enough_clearer; ++tried) {
    for (std::size_t i = starts.size(); i > 1; --i) std::swap(starts[i - 1], starts[random() % i]);  // Fisher–Yates
    permuted.clear();
    for (const std::size_t start : starts) {
      const auto part = values.subspan(start, std::min(block, values.size() - start));
      permuted.insert(permuted.end(), part.begin(), part.end());
    }
    clearer += fit_changes(permuted).clearest() >= clearest * (1 - 1e-9);
  }
  return static_cast<double>(clearer + 1) / static_cast<double>(tried + 1);
}

}  // namespace step_change_parts

StepChangeTest test_step_change(std::span<const double> values, double least_change) {
  using namespace step_change_parts;
  StepChangeTest test;
  const std::size_t n = values.size();
  if (n < fewest_iterations) return test;
  const std::vector<double> places = places_of(values);
  Fit fit = fit_changes(places);
  // The values locate a large jump more exactly than the places do, unless single iterations mislead them.
  const std::size_t by_values = fit_changes(values).at;
  if (by_values > 0 && explained_at(places, by_values) > most_of_jump * fit.jump) fit.at = by_values;
  const auto better = fit.jump > fit.drift ? StepChange::Kind::jump : StepChange::Kind::drift;
  const std::vector<double> rest = residuals(places, describe(places, fit, better));
  test.autocorrelation_time = autocorrelation_time(rest, 2);
  if (static_cast<double>(n) < least_step_change_times * test.autocorrelation_time) return test;
  test.block = static_cast<std::size_t>(std::ceil(
      std::max(change_block_times * test.autocorrelation_time, static_cast<double>(n) / usual_change_blocks)));
  test.judged = true;
  const double noise = variance_sum(rest) / static_cast<double>(n) * test.autocorrelation_time;
  StepChange change = describe(values, fit, kind_of(fit, noise));
  // A drift's ends differ by more than the means of its two parts.
  const StepChange widest =
      change.kind == StepChange::Kind::jump ? change : describe(values, fit, StepChange::Kind::drift);
  if (std::abs(widest.after - widest.before) < least_change) return test;
  const auto permutations =
      static_cast<std::size_t>(std::clamp(change_work_limit / static_cast<double>(n),
                                          double{fewest_change_permutations}, double{most_change_permutations}));
  // The length of the blocks is on the safe side; the variance that they leave out is estimated without a margin.
  const double clearest = fit.clearest() / variance_beyond_blocks(autocorrelation_time(rest, 2, 1, 0), test.block);
  change.p = change.p_alone = chance_of_change(places, test.block, clearest, permutations);
  if (change.p <= accusation_level) test.change = change;
  return test;
}

}  // namespace paceline::analysis
