// The least and the greatest of any stretch of values, for pictures in which a pixel covers many of them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace paceline::analysis {

class ValueRanges {
 public:
  struct Range {
    double low = 0, high = 0;
    bool operator==(const Range&) const = default;
  };

  ValueRanges() = default;
  // Cost: linear; 1.1 bytes a value.
  explicit ValueRanges(std::span<const double> values);

  // Of values[begin] to values[end − 1], at least one; `values` are those that this was made from. O(log n).
  Range over(std::span<const double> values, std::size_t begin, std::size_t end) const;

 private:
  static constexpr std::size_t fanout = 16;
  std::vector<std::vector<Range>> levels_;  // levels_[k][b]: of 16^(k+1) values from b · 16^(k+1) on
};

}  // namespace paceline::analysis
