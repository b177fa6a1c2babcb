// Confidence intervals by the circular block bootstrap (D. N. Politis, J. P. Romano, 1992): whole iterations are drawn
// in blocks of neighbours, because neighbours are alike (a warm cache, a slow minute); the series is closed to a ring
// so that each is drawn equally often. An iteration is one value for all ranks together. Deterministic: a seed gives
// the same interval on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace paceline::analysis {

struct Interval {
  double low = 0, high = 0;
};

inline constexpr std::size_t bootstrap_resamples = 2000;

// Draws series of the length of `values` from it, block by block. Block length: the cube root of the length.
class BlockResampler {
 public:
  explicit BlockResampler(std::uint64_t seed) : state_(seed) {}
  // `out` gets values.size() values. An empty series stays empty.
  void draw(std::span<const double> values, std::vector<double>& out);
  double draw_sum(std::span<const double> values);

 private:
  std::size_t below(std::size_t bound);
  std::uint64_t state_;
};

// totals[b][r]: the sum of run r's resampled values, for each of the resamples b.
std::vector<std::vector<double>> bootstrap_totals(std::span<const std::vector<double>> runs, std::uint64_t seed = 1,
                                                  std::size_t resamples = bootstrap_resamples);

// The middle 95 % of the values (percentile interval); values are sorted on the way. Needs at least one value.
Interval middle_95(std::vector<double> values);

// 95 % interval of the median of the values.
Interval bootstrap_median(std::span<const double> values, std::uint64_t seed = 1,
                          std::size_t resamples = bootstrap_resamples);

// Linear interpolation between order statistics; q from 0 to 1. Needs at least one value.
double quantile(std::vector<double> values, double q);

}  // namespace paceline::analysis
