#include "analysis/index/value_ranges.h"

#include <algorithm>

namespace paceline::analysis {
namespace {

void widen(ValueRanges::Range& range, const ValueRanges::Range& by) {
  range.low = std::min(range.low, by.low);
  range.high = std::max(range.high, by.high);
}

}  // namespace

ValueRanges::ValueRanges(std::span<const double> values) {
  for (std::size_t below = values.size(); below > fanout;) {
    const std::size_t blocks = (below + fanout - 1) / fanout;
    std::vector<Range> level(blocks);
    const auto entry = [&](std::size_t i) { return levels_.empty() ? Range{values[i], values[i]} : levels_.back()[i]; };
    for (std::size_t block = 0; block < blocks; ++block) {
      level[block] = entry(block * fanout);
      for (std::size_t i = block * fanout + 1; i < std::min(below, (block + 1) * fanout); ++i) {
        widen(level[block], entry(i));
      }
    }
    levels_.push_back(std::move(level));
    below = blocks;
  }
}

ValueRanges::Range ValueRanges::over(std::span<const double> values, std::size_t begin, std::size_t end) const {
  Range range{values[begin], values[begin]};
  // Single values up to a block's edge, then ever larger blocks while they fit, then smaller ones again.
  for (std::size_t at = begin; at < end;) {
    std::size_t size = 1;
    Range piece{values[at], values[at]};
    for (const auto& level : levels_) {
      const std::size_t larger = size * fanout;
      if (at % larger != 0 || at + larger > end) break;
      size = larger;
      piece = level[at / larger];
    }
    widen(range, piece);
    at += size;
  }
  return range;
}

}  // namespace paceline::analysis
