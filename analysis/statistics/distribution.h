// SPDX-License-Identifier: Apache-2.0
// A set of whole numbers in eight figures, as pandas' describe() has them.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline::analysis {

struct Distribution {
  std::uint64_t count = 0;
  double mean = 0, stddev = 0;          // of the sample: divided by count - 1; 0 where the count is 1
  double p25 = 0, median = 0, p75 = 0;  // interpolated linearly between order statistics
  std::int64_t minimum = 0, maximum = 0;
};

// Cost: linear on average.
Distribution distribution_of(std::vector<std::int64_t> values);

// Count, mean and standard deviation of values that come one by one, without keeping them (Welford's method).
class RunningMoments {
 public:
  void add(double value) {
    ++count_;
    const double away = value - mean_;
    mean_ += away / static_cast<double>(count_);
    squares_ += away * (value - mean_);
  }
  std::uint64_t count() const { return count_; }
  double mean() const { return mean_; }
  double stddev() const;

 private:
  std::uint64_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

}  // namespace paceline::analysis
