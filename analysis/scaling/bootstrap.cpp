#include "analysis/scaling/bootstrap.h"

#include <algorithm>
#include <cmath>

namespace paceline::analysis {
namespace {

std::size_t block_length(std::size_t count) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(std::cbrt(static_cast<double>(count)))));
}

double sorted_quantile(std::span<const double> sorted, double q) {
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 >= sorted.size()) return sorted.back();
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[below + 1] - sorted[below]);
}

}  // namespace

// splitmix64 (S. Vigna), and Lemire's multiply-shift instead of a division: the standard library's distributions
// differ between implementations, and intervals should not.
std::size_t BlockResampler::below(std::size_t bound) {
  state_ += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<std::size_t>(((z >> 32) * static_cast<std::uint64_t>(bound)) >> 32);
}

void BlockResampler::draw(std::span<const double> values, std::vector<double>& out) {
  out.clear();
  if (values.empty()) return;
  const std::size_t length = block_length(values.size());
  while (out.size() < values.size()) {
    const std::size_t start = below(values.size());
    for (std::size_t i = 0; i < length && out.size() < values.size(); ++i) {
      out.push_back(values[(start + i) % values.size()]);
    }
  }
}

double BlockResampler::draw_sum(std::span<const double> values) {
  std::vector<double> drawn;
  draw(values, drawn);
  double sum = 0;
  for (const double value : drawn) sum += value;
  return sum;
}

std::vector<std::vector<double>> bootstrap_totals(std::span<const std::vector<double>> runs, std::uint64_t seed,
                                                  std::size_t resamples) {
  BlockResampler resampler(seed);
  std::vector<std::vector<double>> totals(resamples, std::vector<double>(runs.size()));
  for (auto& total : totals) {
    for (std::size_t r = 0; r < runs.size(); ++r) total[r] = resampler.draw_sum(runs[r]);
  }
  return totals;
}

Interval middle_95(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {sorted_quantile(values, 0.025), sorted_quantile(values, 0.975)};
}

Interval bootstrap_median(std::span<const double> values, std::uint64_t seed, std::size_t resamples) {
  BlockResampler resampler(seed);
  std::vector<double> medians(resamples), drawn;
  for (auto& median : medians) {
    resampler.draw(values, drawn);
    median = quantile(drawn, 0.5);
  }
  return middle_95(std::move(medians));
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return sorted_quantile(values, q);
}

}  // namespace paceline::analysis
