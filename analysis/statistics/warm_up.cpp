// SPDX-License-Identifier: Apache-2.0
#include "analysis/statistics/warm_up.h"

#include <vector>

namespace paceline::analysis {

std::optional<std::size_t> mser5_warm_up(std::span<const double> values) {
  constexpr std::size_t group = 5, fewest_groups = 4;
  std::vector<double> means;
  for (std::size_t at = 0; at + group <= values.size(); at += group) {
    double sum = 0;
    for (const double value : values.subspan(at, group)) sum += value;
    means.push_back(sum / group);
  }
  if (means.size() < fewest_groups) return std::nullopt;
  // From the end: the sum of the squares about the mean of the last values, one more at a time (Welford).
  double mean = 0, squares = 0, best = 0;
  std::size_t best_at = means.size();
  for (std::size_t at = means.size(); at-- > 0;) {
    const double n = static_cast<double>(means.size() - at), away = means[at] - mean;
    mean += away / n;
    squares += away * (means[at] - mean);
    if (means.size() - at < fewest_groups) continue;  // the error of so few is not known
    const double error = squares / (n * n);
    if (best_at == means.size() || error <= best) best = error, best_at = at;
  }
  if (2 * best_at > means.size()) return std::nullopt;
  return group * best_at;
}

}  // namespace paceline::analysis
