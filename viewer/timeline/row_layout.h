// SPDX-License-Identifier: Apache-2.0
// Where the rows of the timeline are. Pinned rows come first. Each rank has a first row with the strip of its phases,
// and below it the rows of its tracks and counters, unless they are folded. Folded ranks share the room that is left.
// If there is room to spare, the levels of nesting are taller.
//
// Placing is linear in the rows of all ranks. What is at a height, and what is visible, is found by binary search.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "viewer/timeline/rows/rows.h"

namespace paceline::viewer {

struct PlacedRow {
  Row* row = nullptr;
  bool folded = false;    // a strip of phases that stands for its rank
  bool pinned = false;    // above all ranks, apart from its own
  std::size_t order = 0;  // of its rank from top to bottom
  int y = 0, end_y = 0;   // from the top of the first rank
};

struct PlacedRank {
  std::size_t rank = 0;  // index into Run::ranks
  int y = 0, end_y = 0;  // with its margins
};

class RowLayout {
 public:
  static constexpr int lowest_level = 16, highest_level = 26, margin = 2;
  static constexpr int lowest_folded = 6, highest_folded = 28;  // height of a folded rank
  static constexpr int pinned_folded = 20;                      // … that is pinned, so that its name can be read

  // Both have to outlive the layout.
  RowLayout(Document& document, const Arrangement& arrangement);

  // Places the rows that are not folded. `room` is the height that they should fill, if they can.
  void place(int room);
  // Begins what the rows between two heights need, and returns whether one of them is as it was not placed: it knows
  // its height only now, or that it has nothing to show. place() must follow then. Cost: linear in these rows.
  bool prepare_between(int top, int bottom) const;
  // Hides slices, and the rows that have no others. place() must follow.
  void set_filter(const KindSets& kinds);

  // How often the rows were placed: whoever refers to them by their number compares it.
  std::size_t placings() const { return placings_; }
  int level_height() const { return level_height_; }
  int height() const { return height_; }
  // The height of the pinned rows and ranks, which stay in view while the others are scrolled; 0 where they would take
  // more than half of the room.
  int pinned_height(int room) const { return 2 * pinned_height_ <= room ? pinned_height_ : 0; }
  const std::vector<PlacedRank>& ranks() const { return ranks_; }
  const std::vector<PlacedRow>& rows() const { return placed_; }
  // The rows of one rank, the strip of phases first, without those that are pinned.
  std::span<const PlacedRow> rows_of(std::size_t rank) const;

  // Rows and ranks of which a part is between two heights. O(log n).
  std::span<const PlacedRow> rows_between(int top, int bottom) const;
  std::span<const PlacedRank> ranks_between(int top, int bottom) const;
  // The rank that is `steps` below another one on screen, above it if negative; nothing at the ends, or if its host is
  // folded. O(n).
  std::optional<std::size_t> rank_beside(std::size_t rank, int steps) const;
  // The row at this height; nullptr between rows. O(log n).
  const PlacedRow* at(int y) const;
  // The row that shows this slice; nullptr if it is folded. Linear in the pinned rows and the rows of its rank.
  const PlacedRow* row_of(const SliceRef& slice) const;

 private:
  Document& document_;
  const Arrangement& arrangement_;
  Rows all_;                                                    // rank by rank
  Rows hosts_;                                                  // headings
  std::vector<std::size_t> first_;                              // of a rank in all_; one more at the end
  std::vector<PlacedRow> placed_;                               // those that are shown
  std::size_t pinned_ = 0;                                      // how many of them are pinned; they are the first ones
  std::vector<std::pair<std::size_t, std::size_t>> placed_of_;  // of each rank: from and to in placed_
  std::vector<PlacedRank> ranks_;                               // from top to bottom
  int height_ = 0, pinned_height_ = 0;
  std::size_t placings_ = 0;
  int level_height_ = lowest_level;
};

}  // namespace paceline::viewer
