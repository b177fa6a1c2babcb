// Where the rows of the timeline are. Each rank has a first row with the strip of its phases, and below it the rows of
// its tracks and counters, unless they are folded. If there is room to spare, the levels of nesting are taller.
//
// Placing is linear in the rows of all ranks. What is at a height, and what is visible, is found by binary search.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "viewer/timeline/rows/rows.h"

namespace paceline::viewer {

struct PlacedRow {
  Row* row = nullptr;
  int y = 0, end_y = 0;  // from the top of the first rank
};

struct PlacedRank {
  int y = 0, end_y = 0;  // with its margins
};

class RowLayout {
 public:
  static constexpr int lowest_level = 18, highest_level = 26, margin = 4;

  // Both have to outlive the layout.
  RowLayout(Document& document, const ViewState& state);

  // Places the rows that are not folded. `room` is the height that they should fill, if they can.
  void place(int room);

  int level_height() const { return level_height_; }
  int height() const { return ranks_.empty() ? 0 : ranks_.back().end_y; }
  const std::vector<PlacedRank>& ranks() const { return ranks_; }
  const std::vector<PlacedRow>& rows() const { return placed_; }
  // The rows of one rank, the strip of phases first.
  std::span<const PlacedRow> rows_of(std::size_t rank) const;

  // Rows and ranks of which a part is between two heights. O(log n).
  std::span<const PlacedRow> rows_between(int top, int bottom) const;
  std::span<const PlacedRank> ranks_between(int top, int bottom) const;
  // The row at this height; nullptr between rows. O(log n).
  const PlacedRow* at(int y) const;
  // The row that shows this slice; nullptr if it is folded. Linear in the rows of its rank.
  const PlacedRow* row_of(const SliceRef& slice) const;

 private:
  const ViewState& state_;
  Rows all_;                               // rank by rank
  std::vector<std::size_t> first_;         // of a rank in all_; one more at the end
  std::vector<PlacedRow> placed_;          // those that are shown
  std::vector<std::size_t> first_placed_;  // of a rank in placed_; one more at the end
  std::vector<PlacedRank> ranks_;
  int level_height_ = lowest_level;
};

}  // namespace paceline::viewer
