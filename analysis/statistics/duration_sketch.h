// SPDX-License-Identifier: Apache-2.0
// The distribution of durations that come one by one, in bounded memory.
//
// Count, sum (sum.h), minimum, maximum and standard deviation are exact. Up to 1,024 durations are kept, so that
// quantiles of them are exact as well. Beyond that, a histogram takes them: each power of two is divided into 64 equal
// buckets, as in HdrHistogram (G. Tene), so that a quantile is wrong by less than 1 % (1/128); below 128 ns it is
// exact. A histogram takes at most 30 kB, 512 bytes for each power of two between the shortest and the longest
// duration.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "analysis/statistics/sum.h"

namespace paceline::analysis {

class DurationSketch {
 public:
  // Adds a duration in nanoseconds; a negative one counts as 0. O(1).
  void add(std::int64_t ns) {
    ns = std::max<std::int64_t>(ns, 0);
    if (count_ == 0) origin_ns_ = ns;
    ++count_;
    add_to_sum(sum_ns_, ns);
    minimum_ns_ = std::min(minimum_ns_, ns);
    maximum_ns_ = std::max(maximum_ns_, ns);
    const double away = static_cast<double>(ns - origin_ns_);
    squares_ += away * away;
    const std::size_t at = bucket_of(ns) - first_;  // wraps around below the first bucket
    if (at < counts_.size()) {
      ++counts_[at];
    } else {
      add_slowly(ns);
    }
  }
  // Adds all durations of the other sketch. Linear in its buckets.
  void merge(const DurationSketch& other);

  std::uint64_t count() const { return count_; }
  std::int64_t sum_ns() const { return sum_ns_; }
  std::int64_t minimum_ns() const { return count_ == 0 ? 0 : minimum_ns_; }
  std::int64_t maximum_ns() const { return maximum_ns_; }
  double mean_ns() const { return count_ == 0 ? 0 : static_cast<double>(sum_ns_) / static_cast<double>(count_); }
  // Of the sample: divided by count - 1; 0 where the count is below 2.
  double stddev_ns() const;
  // The q-quantile (0 <= q <= 1), interpolated linearly between order statistics; 0 where there are no durations.
  double quantile_ns(double q) const;
  bool exact() const { return counts_.empty(); }  // whether quantiles are

  // Calls fields(…) with all of its members, which a copy in another process needs.
  template <class Fields>
  void each_field(Fields&& fields) {
    fields(count_, sum_ns_, maximum_ns_, minimum_ns_, origin_ns_, squares_, first_, counts_, kept_);
  }

 private:
  static constexpr std::size_t most_kept = 1024;
  static constexpr int bucket_bits = 6;  // 64 buckets for each power of two

  static std::size_t bucket_of(std::int64_t ns) {
    const auto value = static_cast<std::uint64_t>(ns);
    const int shift = std::max(static_cast<int>(std::bit_width(value)) - (bucket_bits + 1), 0);
    return (static_cast<std::size_t>(shift) << bucket_bits) + static_cast<std::size_t>(value >> shift);
  }
  static double middle_of(std::size_t bucket);
  void add_slowly(std::int64_t ns);
  void begin_histogram();
  void count_in_histogram(std::size_t bucket, std::uint64_t times);
  double at(std::uint64_t index) const;  // the order statistic from the histogram

  std::uint64_t count_ = 0;
  std::int64_t sum_ns_ = 0, maximum_ns_ = 0, minimum_ns_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t origin_ns_ = 0;  // the first duration, about which squares are summed
  double squares_ = 0;
  std::size_t first_ = 0;              // the bucket of counts_[0], a multiple of 64
  std::vector<std::uint64_t> counts_;  // empty while all durations are kept
  std::vector<std::int64_t> kept_;
};

}  // namespace paceline::analysis
