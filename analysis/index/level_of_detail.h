// Which slices to draw when one pixel covers many of them.
//
// A screen has some two thousand columns, a run has millions of slices: drawing them all costs too much and shows
// nothing. For one (track, depth) this index answers "what is to be drawn in these columns" so that the cost follows
// the columns, not the slices: slices at least a pixel wide come one by one; a run of narrower ones that start in one
// column is folded into a single item, which carries their number and the longest of them.
//
// Folds are found by galloping search over sorted starts (Bentley and Yao 1976), the longest of a fold by an 8-ary
// implicit tree of maxima over blocks of 8 slices (an idea of Trishume's gigatrace, "iforests", 2021). 4.6 bytes a
// slice; an item costs O(log n).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

// Columns of equal width over a stretch of time; column 0 begins at begin_ns.
struct PixelColumns {
  double begin_ns = 0;
  double ns_per_pixel = 1;
  int count = 0;

  double x(std::int64_t time_ns) const { return (static_cast<double>(time_ns) - begin_ns) / ns_per_pixel; }
  // Clamped to one column beside the visible ones, so that it always fits an int.
  int column(std::int64_t time_ns) const {
    const double at = std::floor(x(time_ns));
    return at < -1 ? -1 : at > count ? count : static_cast<int>(at);
  }
};

class LevelOfDetail {
 public:
  // A stretch of columns to be filled. A slice at least one pixel wide has count 1 and [first, end) from its rounded
  // ends, clamped to [-1, count]; a fold has end = first + 1 and the longest slice of `count`, the first among equals.
  // `middle` is the fold's last slice that starts by the middle of the column, or its first: taken over many columns,
  // names show up in proportion to their time, which the longest ones alone would not.
  struct Item {
    int first = 0, end = 0;
    std::uint32_t slice = 0, middle = 0, count = 0;
    bool operator==(const Item&) const = default;
  };

  LevelOfDetail() = default;
  // Cost: linear in the slices. At most 2³² − 1 slices.
  explicit LevelOfDetail(const Slices& slices);

  unsigned depths() const { return first_.empty() ? 0 : static_cast<unsigned>(first_.size() - 1); }
  // The slices of one depth in order of time, as indices into the columns.
  std::span<const std::uint32_t> at_depth(unsigned depth) const;

  // Replaces `items` by what is to be drawn, left to right: at most two items a column. `slices` are those that the
  // index was built from.
  void items(const Slices& slices, unsigned depth, const PixelColumns& columns, std::vector<Item>& items) const;

  // The slice of this depth that covers [time − slack, time + slack]; of several the longest.
  std::optional<std::uint32_t> slice_at(const Slices& slices, unsigned depth, double time_ns, double slack_ns) const;

  // How much memory the index takes.
  std::size_t bytes() const;

 private:
  std::size_t longest(const Slices& slices, unsigned depth, std::size_t begin, std::size_t end) const;

  std::vector<std::uint32_t> order_;  // slices by depth, then by start
  std::vector<std::size_t> first_;    // where a depth begins in order_; one more at the end
  // levels_[depth][k][b]: position, within the depth, of the longest slice among 8^(k+1) from b · 8^(k+1) on.
  std::vector<std::vector<std::vector<std::uint32_t>>> levels_;
};

}  // namespace paceline::analysis
