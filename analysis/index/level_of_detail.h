// SPDX-License-Identifier: Apache-2.0
// Which slices to draw when one pixel covers many of them.
//
// A screen has some two thousand columns, a run has millions of slices: drawing them all costs too much and shows
// nothing. For one (track, depth) this index answers "what is to be drawn in these columns" so that the cost follows
// the columns, not the slices: slices at least a pixel wide come one by one; a run of narrower ones that start in one
// column is folded into a single item, which carries their number and the longest of them.
//
// Folds are found by galloping search over sorted starts (Bentley and Yao 1976), the longest of a fold by a tree of
// maxima over blocks of 8 slices (range_tree.h). 4.6 bytes a slice, 0.6 where all slices have one depth; an item costs
// O(log n).
//
// A row that shows only some slices of a track, such as its MPI calls, is the same slices with an index of its own.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/index/range_tree.h"
#include "analysis/trace/slices.h"

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
  // Of all slices. Cost: linear in the slices. At most 2³² − 1 slices.
  explicit LevelOfDetail(const Slices& slices);
  // Of the slices whose kind has wanted[kind]; their depths count only each other.
  LevelOfDetail(const Slices& slices, const std::vector<bool>& wanted);

  unsigned depths() const { return static_cast<unsigned>(depths_.size()); }
  // How many slices a depth has, and the i-th of them in the order of time, as an index into the columns.
  std::size_t count(unsigned depth) const { return depth < depths() ? depths_[depth].count : 0; }
  std::uint32_t slice(unsigned depth, std::size_t i) const {
    const Depth& of = depths_[depth];
    return of.order.empty() ? static_cast<std::uint32_t>(i) : of.order[i];
  }
  // The position of a slice among those of its depth, or of the first one after it; count(depth) if there is none.
  std::size_t position(unsigned depth, std::uint32_t slice) const;

  // Replaces `items` by what is to be drawn, left to right: at most two items a column. `slices` are those that the
  // index was built from. Whoever needs the longest slice of a fold only if it takes `least_ns` saves most of the time
  // where no slice of the depth takes that long: then a fold's `slice` is its `middle`.
  void items(const Slices& slices, unsigned depth, const PixelColumns& columns, std::vector<Item>& items,
             double least_ns = 0) const;

  // The slice of this depth that covers [time − slack, time + slack]; of several the longest.
  std::optional<std::uint32_t> slice_at(const Slices& slices, unsigned depth, double time_ns, double slack_ns) const;

  // How much memory the index takes.
  std::size_t bytes() const;

 private:
  struct Depth {
    std::size_t count = 0;
    std::vector<std::uint32_t> order;     // the slices by start; empty where they are all slices of the track
    RangeTree<std::uint32_t, 8> longest;  // positions within the depth
  };

  void build(const Slices& slices);
  // The position of the longest slice from `begin` to before `end`, the first one of equals.
  std::size_t longest(const Slices& slices, unsigned depth, std::size_t begin, std::size_t end) const;

  std::vector<Depth> depths_;
};

}  // namespace paceline::analysis
