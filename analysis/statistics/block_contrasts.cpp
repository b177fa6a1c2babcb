// SPDX-License-Identifier: Apache-2.0
#include "analysis/statistics/block_contrasts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/statistics/autocorrelation.h"
#include "analysis/statistics/interval.h"

namespace paceline::analysis {
namespace block_contrast_parts {

constexpr double block_times = 1.5;       // least length of a block, in autocorrelation times
constexpr double least_block = 3;         // iterations: what recurs every few iterations is in each block
constexpr double cautious_errors = 3;     // standard errors added to the estimate of how alike neighbouring blocks are
constexpr std::size_t longer = 3;         // times a block: of the blocks that show how alike neighbouring blocks are
constexpr std::size_t part_lags = 3;      // of a third of a block: as far as the next block
constexpr std::size_t fewest_parts = 10;  // fewer do not show how alike they are
constexpr double usual_blocks = 40;       // a block is longer where the run is
constexpr double overlap_degrees = 4.0 / 3;  // times the degrees of freedom of blocks that do not overlap
constexpr double fewest_blocks = 5;          // fewer do not show their own spread
constexpr double least_suspicion_times = 6;  // autocorrelation times of a run that may have a suspect by its blocks
constexpr double short_run_caution = 3;      // times p, where the run is too short to be judged
constexpr double whole_run_scale = 0.87, whole_run_degrees = 8;  // p_of_whole_run()
constexpr double lasts_longer_errors = 2.5;                      // standard errors: less happens by chance
constexpr double explained_by_jump = 2.0 / 3;                    // of the variance of a column, which then jumps

// Subtracts the mean of a column; where the column jumps to another level during the run, both means. Otherwise the
// jump itself would look like autocorrelation.
void centre(std::vector<double>& values, std::size_t column, std::size_t columns) {
  const std::size_t n = values.size() / columns;
  double mean = 0;
  for (std::size_t i = 0; i < n; ++i) mean += values[i * columns + column] / static_cast<double>(n);
  double square = 0, sum = 0, largest = 0;
  std::size_t at = 0;
  double sum_at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double& value = values[i * columns + column];
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
  for (std::size_t i = 0; i < n; ++i) values[i * columns + column] -= i < at ? before : after;
}

// Means over all blocks of `block` neighbouring iterations, which overlap: one row for each block, and one of the means
// over all iterations.
std::vector<double> block_means(std::span<const double> values, std::size_t columns, std::size_t block) {
  const std::size_t rows = values.size() / columns;
  std::vector<double> means((rows - block + 2) * columns), sums(columns);
  for (std::size_t i = 0; i < values.size(); ++i) {
    double& sum = sums[i % columns];
    sum += values[i];
    means[(rows - block + 1) * columns + i % columns] += values[i] / static_cast<double>(rows);
    if (i < (block - 1) * columns) continue;
    const std::size_t first = i - (block - 1) * columns;
    means[first] = sum / static_cast<double>(block);
    sum -= values[first];
  }
  return means;
}

struct Moments {
  double mean = 0, variance = 0;
};

template <typename ValueOf>
Moments moments(std::size_t count, const ValueOf& value_of) {
  Moments result;
  const auto n = static_cast<double>(count);
  for (std::size_t i = 0; i < count; ++i) result.mean += value_of(i) / n;
  for (std::size_t i = 0; i < count; ++i) {
    const double beside = value_of(i) - result.mean;
    result.variance += beside * beside / n;
  }
  return result;
}

// What the variances of all contrasts say of each: as much as one with these degrees of freedom.
struct Prior {
  double degrees = 0, variance = 0;
};

// The hyperparameters of G. K. Smyth ("Linear models and empirical Bayes methods for assessing differential expression
// in microarray experiments", Statistical Applications in Genetics and Molecular Biology 3, 2004, section 6.2). Of a
// variance with d degrees of freedom, the logarithm is about log(1 - 1/d) too small and has a variance of 2/(d - 1).
// What the logarithms vary by is taken one standard error on the safe side. The contrasts are not independent: all
// together have (columns - 1) d degrees of freedom.
Prior prior_of(std::span<const double> variances, double degrees) {
  const auto count = static_cast<double>(variances.size());
  if (count < 3 || std::ranges::min(variances) <= 0) return {};
  const Moments logs = moments(variances.size(), [&](std::size_t c) { return std::log(variances[c]); });
  const double varies = logs.variance * count / (count - 1) * (1 + std::sqrt(2 / (count - 1))) - 2 / (degrees - 1);
  const double most = (count - 2) * degrees, of_prior = varies > 0 ? std::min(most, 1 + 2 / varies) : most;
  return {of_prior, std::exp(logs.mean) * (1 - 1 / of_prior) / (1 - 1 / degrees)};
}

// The mean of a column whose noise lasts longer than that of the others. Of the other columns, all is 0.
struct OwnNoise {
  double variance = 0, degrees = 0;
};

// A column whose first autocorrelation is clearly above that of all columns together is as certain as its own
// autocorrelation time says. Otherwise the one rank whose noise lasts for many iterations would be called slow. Of two
// columns, both have the same contrast.
std::vector<OwnNoise> noise_that_lasts(std::span<const double> centred, std::size_t columns) {
  std::vector<OwnNoise> own(columns);
  std::vector<double> squares(columns), products(columns);
  for (std::size_t i = 0; i < centred.size(); ++i) {
    squares[i % columns] += centred[i] * centred[i];
    if (i >= columns) products[i % columns] += centred[i] * centred[i - columns];
  }
  const auto n = static_cast<double>(centred.size() / columns);
  const auto correlation_of = [&](double product, double square, double series, double errors) {
    const double estimate = product / square;
    return estimate + (1 + 3 * estimate) / n + errors * std::sqrt((1 - estimate * estimate) / (n * series));
  };
  const double of_all = std::reduce(products.begin(), products.end()),
               all = std::reduce(squares.begin(), squares.end());
  const double common = correlation_of(of_all, all, static_cast<double>(columns) - 1, 1);
  for (std::size_t c = 0; c < columns && columns > 2; ++c) {
    if (!(correlation_of(products[c], squares[c], 1, -lasts_longer_errors) > common)) continue;
    std::vector<double> column;
    for (std::size_t i = c; i < centred.size(); i += columns) column.push_back(centred[i]);
    const double time = std::min(n / 2, autocorrelation_time(column, 1, 1, 0));
    own[c] = {squares[c] / n * time / (n - time), n / time - 1};
  }
  return own;
}

// How certain the mean of a column is: the factor of the blocks' variance, and its degrees of freedom.
struct Certainty {
  double factor = 1, degrees = 1;
  std::vector<OwnNoise> own;  // by column
  bool moderated = false;     // by the variances of all columns; a short run shows too little of how alike they are
};

// The means of the blocks, and the columns that are still compared with each other.
class Contrasts {
 public:
  Contrasts(std::vector<double> means, std::size_t columns, std::span<const std::uint32_t> left_out)
      : means_(std::move(means)), columns_(columns), rows_(means_.size() / columns - 1) {
    for (std::uint32_t c = 0; c < columns; ++c) {
      if (std::ranges::find(left_out, c) == left_out.end()) compared_.push_back(c);
      variances_.push_back(moments(rows_, [&](std::size_t b) { return mean_of(b, c); }).variance);
    }
  }
  std::size_t compared() const { return compared_.size(); }

  // Takes the column that is furthest above the mean of the others, for its noise, out of the comparison. p_of(t,
  // degrees) is the p-value of a mean t standard errors above.
  template <typename POf>
  Suspect take_largest(const Certainty& certainty, const POf& p_of) {
    const double degrees = certainty.degrees;
    std::vector<double> sorted;
    for (const std::uint32_t c : compared_) sorted.push_back(variances_[c]);
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    std::vector<double> weights(columns_);
    double all_weights = 0;
    for (const std::uint32_t c : compared_) {
      const double variance = std::max(variances_[c], *middle);
      all_weights += weights[c] = variance > 0 ? *middle / variance : 1;
    }
    std::vector<double> sums(rows_ + 1);
    for (std::size_t b = 0; b <= rows_; ++b) {
      for (const std::uint32_t c : compared_) sums[b] += weights[c] * mean_of(b, c);
    }
    std::vector<double> above, variances;
    for (const std::uint32_t c : compared_) {
      const auto contrast = [&](std::size_t b) {
        return mean_of(b, c) - (sums[b] - weights[c] * mean_of(b, c)) / (all_weights - weights[c]);
      };
      above.push_back(contrast(rows_));
      variances.push_back(moments(rows_, contrast).variance);
    }
    const Prior prior = certainty.moderated ? prior_of(variances, degrees) : Prior{};
    const double all_degrees = prior.degrees + degrees;
    Suspect suspect{compared_.front(), 0, 1};
    for (std::size_t c = 0; c < compared_.size(); ++c) {
      if (!(above[c] > 0)) continue;
      const OwnNoise& own = certainty.own[compared_[c]];
      const double moderated = (prior.degrees * prior.variance + degrees * variances[c]) / all_degrees;
      const double variance = moderated * certainty.factor;
      const bool lasts = own.variance > variance;
      const double t = above[c] / std::sqrt(lasts ? own.variance : variance);
      const double p = p_of(t, lasts ? std::min(own.degrees, all_degrees) : all_degrees);
      if (p < suspect.p) suspect = {compared_[c], above[c], p};
    }
    std::erase(compared_, suspect.column);
    return suspect;
  }

 private:
  double mean_of(std::size_t block, std::size_t column) const { return means_[block * columns_ + column]; }

  std::vector<double> means_;
  std::size_t columns_, rows_;
  std::vector<std::uint32_t> compared_;
  std::vector<double> variances_;  // of each column's means
};

// The variance of the run's mean times the iterations, as the means of parts of the run and the correlations of parts
// that are at most `lags` apart show it. Subtracting a mean makes each correlation too small (Kendall 1954, see
// autocorrelation.h).
double long_run_variance(std::span<const double> centred, std::size_t columns, std::size_t part, std::size_t lags) {
  const std::vector<double> means = block_means(centred, columns, part);
  const auto covariance = [&](std::size_t lag) {
    const auto from = static_cast<std::ptrdiff_t>(lag * part * columns);
    return std::inner_product(means.begin() + from, means.end(), means.begin(), 0.0);
  };
  const auto rows = static_cast<double>(means.size() / columns);
  const double parts = static_cast<double>(centred.size() / columns) / static_cast<double>(part);
  const double square = covariance(0), missing = std::max(0.0, square + 3 * covariance(1)) / parts;
  double sum = square;
  for (std::size_t lag = 1; lag <= lags; ++lag) sum += 2 * (covariance(lag) + missing);
  return static_cast<double>(part) * std::max(0.0, sum) / (rows * (1 - 1 / parts));
}

// By how much the variance of the run's mean is above the one that blocks show. For an AR(1) process this follows from
// its time, but it is at most what longer blocks show: with blocks of length b, a share that is inversely proportional
// to b is missing. Neighbouring values that are alike because of waves of a few iterations do not make longer blocks
// alike. It is at least what the most variable parts of the run show: noise that lasts beside noise of single
// iterations is seen in long parts only.
double beyond_blocks(std::span<const double> centred, std::size_t columns, std::size_t block, double cautious_time) {
  const double of_blocks = long_run_variance(centred, columns, block, 0);
  if (!(of_blocks > 0)) return 1;
  double beyond = variance_beyond_blocks(cautious_time, block);
  const double count = static_cast<double>(centred.size() / columns) / static_cast<double>(longer * block);
  if (count >= fewest_blocks) {
    const double degrees = overlap_degrees * (count - 1) * static_cast<double>(columns - 1);
    const double ratio = long_run_variance(centred, columns, longer * block, 0) / of_blocks;
    const double upper = ratio * std::exp(cautious_errors * std::sqrt(2 / degrees));
    beyond = std::clamp((longer * upper - 1) / (longer - 1), 1.0, beyond);
  }
  double of_parts = long_run_variance(centred, columns, std::max<std::size_t>(1, block / 3), part_lags);
  for (std::size_t part = block; part * fewest_parts * columns <= centred.size(); part *= 2) {
    of_parts = std::max(of_parts, long_run_variance(centred, columns, part, 1));
  }
  return std::max(beyond, of_parts / of_blocks);
}

// The whole run is one observation, with the spread that its iterations show: P(X >= k sigma) <= 1/(1 + k^2) for every
// distribution (F. P. Cantelli, 1928).
double p_of_few(double t, double /*degrees*/) { return 1 / (1 + t * t); }

// Likewise, where a run has enough iterations to show noise that lasts. The means of AR(1) noise whose autocorrelation
// time is that of the run exceed t as often as Student's t with these degrees of freedom exceeds this part of it
// (simulated: 1.7 % of them exceed 3, 0.4 % exceed 4); noise that is shorter does so more seldom.
double p_of_whole_run(double t, double /*degrees*/) { return t_two_sided(whole_run_scale * t, whole_run_degrees) / 2; }

template <typename POf>
void accuse(Contrasts& comparison, const Certainty& certainty, const POf& p_of, BlockContrasts& result) {
  result.tests = comparison.compared();
  while (comparison.compared() > 1) {
    Suspect suspect = comparison.take_largest(certainty, p_of);
    if (suspect.p > accusation_level) break;
    if (!result.suspects.empty()) suspect.p = std::max(suspect.p, result.suspects.back().p);
    result.suspects.push_back(suspect);
  }
}

}  // namespace block_contrast_parts

BlockContrasts block_contrasts(std::span<const double> values, std::size_t columns,
                               std::span<const std::uint32_t> left_out) {
  using namespace block_contrast_parts;
  BlockContrasts result;
  if (columns < 2 || values.size() / columns < 2) return result;
  const auto n = static_cast<double>(values.size() / columns);
  std::vector<double> centred(values.begin(), values.end());
  for (std::size_t c = 0; c < columns; ++c) centre(centred, c, columns);
  const double time = result.autocorrelation_time = autocorrelation_time(centred, 1, columns);
  if (n < fewest_blocks * least_block) return result;
  const double long_enough = std::min(block_times * time, std::floor(n / fewest_blocks));
  result.block = static_cast<std::size_t>(std::ceil(std::max({least_block, long_enough, n / usual_blocks})));
  const double blocks = n / static_cast<double>(result.block);
  // Fewer than 20 iterations say too little of their autocorrelation.
  if (n < std::max(least_contrast_times, least_suspicion_times * time)) {
    result.block = 1;
    Contrasts comparison(block_means(values, columns, 1), columns, left_out);
    accuse(comparison, {.own = std::vector<OwnNoise>(columns)}, n < least_contrast_times ? p_of_few : p_of_whole_run,
           result);
    return result;
  }
  Contrasts comparison(block_means(values, columns, result.block), columns, left_out);
  result.judged = n >= least_contrast_times * time;
  // A short run is judged only if its autocorrelation time looks small, so in the runs that are judged the true time is
  // often larger than the estimate.
  const double cautious_time = autocorrelation_time(centred, 1, columns, cautious_errors);
  const double beyond = beyond_blocks(centred, columns, result.block, cautious_time);
  const double degrees = overlap_degrees * (blocks - 1), caution = result.judged ? 1 : short_run_caution;
  const auto p_of = [=](double t, double all_degrees) { return caution * t_two_sided(t, all_degrees) / 2; };
  accuse(comparison, {beyond / (blocks - 1), degrees, noise_that_lasts(centred, columns), result.judged}, p_of, result);
  return result;
}

}  // namespace paceline::analysis
