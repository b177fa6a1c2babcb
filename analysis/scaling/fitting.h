// SPDX-License-Identifier: Apache-2.0
// The parts of scaling_of: comparisons of points, laws, time models. Each fills its members of Scaling.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "analysis/scaling/scaling.h"

namespace paceline::analysis {

// The logarithms of the mean seconds per image of some points, and their spreads.
struct LogTimes {
  std::vector<double> logs;
  std::vector<const Spread*> spreads;
};
LogTimes log_times(const std::vector<ScalingPoint>& points, std::span<const std::size_t> which);

// The probability with which each of several comparisons may miss, so that any of them misses with 5 %.
inline double corrected(std::size_t comparisons, double all = 0.05) {
  return all / static_cast<double>(std::max<std::size_t>(1, comparisons));
}

Verdict verdict_of(const std::optional<Interval>& corrected_interval);

void fit_laws(Scaling& scaling);
void fit_weak_scaling(Scaling& scaling);
void fit_time_models(Scaling& scaling);
void choose_laws(Scaling& scaling);  // after all fits

}  // namespace paceline::analysis
