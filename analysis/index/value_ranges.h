// SPDX-License-Identifier: Apache-2.0
// The least and the greatest of any stretch of values, for pictures in which a pixel covers many of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "analysis/index/range_tree.h"

namespace paceline::analysis {

class ValueRanges {
 public:
  struct Range {
    double low = 0, high = 0;
    bool operator==(const Range&) const = default;
  };

  ValueRanges() = default;
  // Cost: linear; 1.1 bytes a value.
  explicit ValueRanges(std::span<const double> values) : tree_(values.size(), Single{values}, merged) {}

  // Of values[begin] to values[end − 1], at least one; `values` are those that this was made from. O(log n).
  Range over(std::span<const double> values, std::size_t begin, std::size_t end) const {
    return tree_.over(begin, end, Single{values}, merged);
  }

 private:
  struct Single {
    std::span<const double> values;
    Range operator()(std::size_t i) const { return {values[i], values[i]}; }
  };
  static Range merged(const Range& a, const Range& b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

  RangeTree<Range, 16> tree_;
};

}  // namespace paceline::analysis
