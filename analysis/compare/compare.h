// SPDX-License-Identifier: Apache-2.0
// What became slower or faster between two runs, or between two sets of repeated runs, and whether that is chance.
//
// A quantity of one run is summarised by its 10 % trimmed mean over the steady iterations, whose variance follows from
// the winsorised values (K. K. Yuen, "The two-sample trimmed t for unequal population variances", Biometrika 61, 1974),
// times the autocorrelation time. Ratios are compared as logarithms with Welch's t test. Where a side has several runs,
// the runs' means are the sample instead (t test of the logarithms with one variance for both sides). The step is
// tested first, at 4 %, and the names within it at 5 % if the step differs, else at 1 %, corrected together (S. Holm,
// Scandinavian Journal of Statistics 6, 1979; weighted as in his section 4). Of equal runs, 5 % are called different.
//
// Where a run has no iterations, names are compared by their totals over the whole run, and nothing is tested.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/profile.h"
#include "analysis/statistics/interval.h"

namespace paceline::analysis {

inline constexpr double comparison_level = 0.05;     // family-wise
inline constexpr double step_level = 0.04;           // of the step alone
inline constexpr double least_comparison_times = 8;  // autocorrelation times that a run must have to be judged

enum class Change { none, slower, faster };

struct QuantityComparison {
  QuantityType type = QuantityType::step;
  std::string name;
  double base_s = 0, new_s = 0;          // in an iteration, mean over the runs of a set
  double ratio = 1;                      // new ÷ base
  std::optional<Interval> ci95 = {};     // of the ratio; of the step at its own level, of names without the correction
  std::optional<double> p = {};          // of names corrected; nothing where it was not judged
  double base_count = 0, new_count = 0;  // over the whole run, mean over ranks and runs; of totals only
  Change change = Change::none;          // beyond chance, all quantities together
  double difference_s() const { return new_s - base_s; }
};

struct RunComparison {
  std::vector<RunAnalysis> base, fresh;                 // the runs of each set
  bool totals = false;                                  // the quantities are totals over whole runs
  bool judged = false;                                  // false: too few iterations, and no repeated runs
  bool between_runs = false;                            // the test rests on repeated runs
  std::vector<QuantityComparison> quantities;           // the step first; the others by the size of their difference
  std::vector<QuantityComparison> only_base, only_new;  // quantities that one side lacks, the largest first
  std::vector<std::string> differences;                 // of the runs' descriptions: "dtype: f32 → bf16"

  // The step; nullptr where a side has no iterations.
  const QuantityComparison* step() const {
    return quantities.empty() || quantities.front().type != QuantityType::step ? nullptr : &quantities.front();
  }
};

// Each side has at least one run. Quantities are matched by type and name. Cost: linear in the quantities × iterations.
RunComparison compare_runs(std::vector<RunProfile> base, std::vector<RunProfile> fresh);

}  // namespace paceline::analysis
