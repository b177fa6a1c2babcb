// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "analysis/statistics/autocorrelation.h"
#include "analysis/statistics/statistics.h"

namespace paceline::analysis {
namespace compare_parts {

constexpr double trimmed_share = 0.1;  // on each side
// A run that is shorter is judged by the means of few blocks, which need no estimate of the autocorrelation.
constexpr double many_times = 20;
constexpr std::size_t blocks = 4, least_iterations = 24, many_iterations = 100;

// The trimmed mean of one quantity of one run.
struct Mean {
  double seconds = 0;
  double variance = 0;  // of the mean, relative to its square: the variance of its logarithm
  double degrees = 0;
  bool judged = false;  // long enough
};

// Of the mean of centred values, by the means of a few blocks (Ibragimov and Müller, J. Business & Economic Statistics
// 28, 2010).
double variance_of_block_means(std::span<const double> centred) {
  double squares = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t begin = i * centred.size() / blocks, end = (i + 1) * centred.size() / blocks;
    squares += std::pow(mean(centred.subspan(begin, end - begin)), 2);
  }
  return squares / (blocks * (blocks - 1));
}

Mean trimmed_mean(const std::vector<double>& values) {
  Mean mean;
  const std::size_t n = values.size();
  const auto cut = static_cast<std::size_t>(trimmed_share * static_cast<double>(n));
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  const auto kept = static_cast<double>(n - 2 * cut);
  mean.seconds = std::accumulate(sorted.begin() + static_cast<std::ptrdiff_t>(cut),
                                 sorted.end() - static_cast<std::ptrdiff_t>(cut), 0.0) /
                 kept;
  if (n < 3 || !(mean.seconds > 0)) return mean;
  // Winsorised: what was cut off takes the value of the nearest one that was kept.
  std::vector<double> centred;
  for (const double value : values) centred.push_back(std::clamp(value, sorted[cut], sorted[n - cut - 1]));
  const double middle = std::accumulate(centred.begin(), centred.end(), 0.0) / static_cast<double>(n);
  for (double& value : centred) value -= middle;
  const double time = autocorrelation_time(centred, 1);
  double variance = 0;
  if (static_cast<double>(n) >= many_times * time && n >= many_iterations) {
    const double squares = std::inner_product(centred.begin(), centred.end(), centred.begin(), 0.0);
    variance = squares / (kept * (kept - 1)) * time;
    mean.degrees = kept / time - 1;
    mean.judged = true;
  } else {
    const double share = kept / static_cast<double>(n);  // Yuen's factor for what was cut off
    variance = variance_of_block_means(centred) / (share * share);
    mean.degrees = blocks - 1;
    const double longest = autocorrelation_time(centred, 1, 1, 1.5);
    mean.judged = static_cast<double>(n) >= least_comparison_times * longest && n >= least_iterations;
  }
  mean.variance = variance / (mean.seconds * mean.seconds);
  return mean;
}

// The mean of a quantity over the runs of a set, and how well it is known.
struct Side {
  double seconds = 0, log = 0;
  double variance = 0, degrees = 0;  // of the logarithm
  std::size_t runs = 0;
  double squares = 0;  // of the logarithms about their mean
  bool judged = false;
};

Side side_of(std::span<const Mean> means) {
  Side side;
  side.runs = means.size();
  const auto n = static_cast<double>(means.size());
  for (const Mean& mean : means) {
    side.seconds += mean.seconds / n;
    side.log += std::log(mean.seconds) / n;
  }
  for (const Mean& mean : means) side.squares += std::pow(std::log(mean.seconds) - side.log, 2);
  side.variance = means.front().variance;
  side.degrees = means.front().degrees;
  side.judged = means.size() == 1 && means.front().judged;
  return side;
}

// Fills ratio, interval and the p value before correction. The interval of the step is that of its own level, so that
// it holds 1 where the test does not find a difference.
void judge(const Side& base, const Side& fresh, QuantityComparison& out) {
  out.base_s = base.seconds;
  out.new_s = fresh.seconds;
  const double log_ratio = fresh.log - base.log;
  out.ratio = std::exp(log_ratio);
  double variance = 0, degrees = 0;
  if (base.runs + fresh.runs > 2) {
    degrees = static_cast<double>(base.runs + fresh.runs - 2);
    variance = (base.squares + fresh.squares) / degrees *
               (1 / static_cast<double>(base.runs) + 1 / static_cast<double>(fresh.runs));
  } else if (base.judged && fresh.judged) {
    variance = base.variance + fresh.variance;
    degrees = variance * variance /
              (base.variance * base.variance / base.degrees + fresh.variance * fresh.variance / fresh.degrees);
  }
  if (!(variance > 0) || !(degrees > 0)) return;
  const double error = std::sqrt(variance), level = out.type == QuantityType::step ? step_level : 0.05,
               width = t_quantile_two_sided(level, degrees) * error;
  out.ci95 = Interval{std::exp(log_ratio - width), std::exp(log_ratio + width)};
  out.p = t_two_sided(log_ratio / error, degrees);
}

// The step first; then Holm's correction of the names within it, at what the step leaves of the level.
void correct(std::vector<QuantityComparison>& quantities) {
  const auto changed = [](const QuantityComparison& of) { return of.ratio > 1 ? Change::slower : Change::faster; };
  std::vector<QuantityComparison*> names;
  double left = comparison_level - step_level;
  for (QuantityComparison& quantity : quantities) {
    if (!quantity.p) continue;
    if (quantity.type != QuantityType::step) {
      names.push_back(&quantity);
    } else if (*quantity.p < step_level) {
      quantity.change = changed(quantity);
      left = comparison_level;
    }
  }
  std::ranges::stable_sort(names, {}, [](const QuantityComparison* quantity) { return *quantity->p; });
  double largest = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    QuantityComparison& quantity = *names[i];
    largest = std::max(largest, std::min(*quantity.p * static_cast<double>(names.size() - i), 1.0));
    quantity.p = largest;
    if (largest < left) quantity.change = changed(quantity);
  }
}

using Key = std::pair<QuantityType, std::string>;
// The mean in each run of a set that has the quantity, by type and name.
std::map<Key, std::vector<Mean>> means_of(const std::vector<RunProfile>& set) {
  std::map<Key, std::vector<Mean>> means;
  for (const RunProfile& profile : set) {
    for (const Quantity& quantity : profile.quantities) {
      means[{quantity.type, quantity.name}].push_back(trimmed_mean(quantity.seconds));
    }
  }
  return means;
}

// What the descriptions of the sets' first runs have different.
std::vector<std::string> differences_of(const RunAnalysis& base, const RunAnalysis& fresh) {
  std::map<std::string, std::pair<std::string, std::string>> values;
  values["ranks"] = {std::to_string(base.ranks), std::to_string(fresh.ranks)};
  for (const auto& [key, value] : base.config) values[key].first = value.text;
  for (const auto& [key, value] : fresh.config) values[key].second = value.text;
  std::vector<std::string> differences;
  for (const auto& [key, both] : values) {
    if (both.first == both.second || key == "seed") continue;
    const auto shown = [](const std::string& text) { return text.empty() ? "–" : text; };
    differences.push_back(key + ": " + shown(both.first) + " → " + shown(both.second));
  }
  return differences;
}

std::vector<RunAnalysis> runs_of(std::vector<RunProfile>&& set) {
  std::vector<RunAnalysis> runs;
  for (RunProfile& profile : set) runs.push_back(std::move(profile.run));
  return runs;
}

}  // namespace compare_parts

RunComparison compare_runs(std::vector<RunProfile> base, std::vector<RunProfile> fresh) {
  using namespace compare_parts;
  RunComparison result;
  for (const auto* set : {&base, &fresh}) {
    result.totals = result.totals || std::ranges::any_of(*set, [](const auto& of) { return of.quantities.empty(); });
  }
  std::map<Key, std::pair<double, double>> counts;  // of totals
  if (result.totals) {
    for (RunProfile& of : base) {
      for (const Quantity& total : of.totals)
        counts[{total.type, total.name}].first += total.count / static_cast<double>(base.size());
      of.quantities = std::move(of.totals);
    }
    for (RunProfile& of : fresh) {
      for (const Quantity& total : of.totals)
        counts[{total.type, total.name}].second += total.count / static_cast<double>(fresh.size());
      of.quantities = std::move(of.totals);
    }
  }
  const auto base_means = means_of(base), new_means = means_of(fresh);
  const auto has = [](const std::vector<RunProfile>& set, const Key& key) {
    return std::ranges::any_of(set, [&](const RunProfile& profile) { return profile.left_out.contains(key); });
  };
  const auto usable = [](const std::vector<Mean>& means, std::size_t runs) {
    return means.size() == runs && std::ranges::all_of(means, [](const Mean& mean) { return mean.seconds > 0; });
  };
  for (const auto& [key, means] : base_means) {
    QuantityComparison quantity{.type = key.first, .name = key.second};
    const auto other = new_means.find(key);
    if (!usable(means, base.size())) continue;
    if (other != new_means.end() && usable(other->second, fresh.size())) {
      judge(side_of(means), side_of(other->second), quantity);
      if (result.totals) {
        std::tie(quantity.base_count, quantity.new_count) = counts[key];
        quantity.p.reset(), quantity.ci95.reset();
      }
      result.quantities.push_back(std::move(quantity));
    } else if (other == new_means.end() && !has(fresh, key)) {
      quantity.base_s = side_of(means).seconds;
      result.only_base.push_back(std::move(quantity));
    }
  }
  for (const auto& [key, means] : new_means) {
    if (base_means.contains(key) || has(base, key) || !usable(means, fresh.size())) continue;
    result.only_new.push_back({.type = key.first, .name = key.second, .new_s = side_of(means).seconds});
  }
  correct(result.quantities);
  std::ranges::stable_sort(result.quantities, [](const QuantityComparison& a, const QuantityComparison& b) {
    if ((a.type == QuantityType::step) != (b.type == QuantityType::step)) return a.type == QuantityType::step;
    return std::abs(a.difference_s()) > std::abs(b.difference_s());
  });
  for (auto* only : {&result.only_base, &result.only_new}) {
    std::ranges::stable_sort(*only, std::ranges::greater{}, [](const auto& q) { return std::abs(q.difference_s()); });
  }
  result.between_runs = base.size() + fresh.size() > 2;
  result.judged = result.step() != nullptr && result.step()->p.has_value();
  result.differences = differences_of(base.front().run, fresh.front().run);
  result.base = runs_of(std::move(base));
  result.fresh = runs_of(std::move(fresh));
  return result;
}

}  // namespace paceline::analysis
