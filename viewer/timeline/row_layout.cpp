#include "viewer/timeline/row_layout.h"

#include <algorithm>

namespace paceline::viewer {
namespace row_layout {

bool is_shown(const Row& row, const ViewState& state) {
  if (row.hidden() == Row::Hidden::never) return true;
  if (state.collapsed(row.rank())) return false;
  return row.hidden() == Row::Hidden::with_rank || state.counters_unfolded(row.rank());
}

// The elements, sorted by height, of which a part is between top and bottom.
template <class Placed>
std::span<const Placed> between(const std::vector<Placed>& all, int top, int bottom) {
  const auto begin = std::ranges::partition_point(all, [&](const Placed& one) { return one.end_y <= top; });
  const auto end = std::partition_point(begin, all.end(), [&](const Placed& one) { return one.y < bottom; });
  return {begin, end};
}

}  // namespace row_layout

RowLayout::RowLayout(Document& document, const ViewState& state) : state_(state) {
  for (std::size_t rank = 0; rank < document.run().ranks.size(); ++rank) {
    first_.push_back(all_.size());
    add_rows(document, rank, all_);
  }
  first_.push_back(all_.size());
  place(0);
}

void RowLayout::place(int room) {
  placed_.clear();
  first_placed_.clear();
  ranks_.clear();
  int levels = 0, pixels = 0;  // the height of all rows is levels × level height + pixels
  for (std::size_t rank = 0; rank + 1 < first_.size(); ++rank) {
    first_placed_.push_back(placed_.size());
    for (std::size_t i = first_[rank]; i < first_[rank + 1]; ++i) {
      if (!row_layout::is_shown(*all_[i], state_)) continue;
      placed_.push_back({.row = all_[i].get()});
      levels += all_[i]->height().levels;
      pixels += all_[i]->height().pixels + margin;
    }
    pixels += state_.collapsed(rank) ? margin : 2 * margin;
  }
  first_placed_.push_back(placed_.size());
  // Even numbers of pixels, as in 18, 20, … 26.
  const int fitting = (room - pixels) / std::max(levels, 1) / 2 * 2;
  level_height_ = std::clamp(fitting, lowest_level, highest_level);
  int y = 0;
  for (std::size_t rank = 0; rank + 1 < first_.size(); ++rank) {
    PlacedRank& place = ranks_.emplace_back(PlacedRank{.y = y});
    y += margin;
    for (std::size_t i = first_placed_[rank]; i < first_placed_[rank + 1]; ++i) {
      const Row::Height height = placed_[i].row->height();
      placed_[i].y = y;
      placed_[i].end_y = y + height.levels * level_height_ + height.pixels;
      y = placed_[i].end_y + margin;
    }
    place.end_y = y += state_.collapsed(rank) ? 0 : margin;
  }
}

std::span<const PlacedRow> RowLayout::rows_of(std::size_t rank) const {
  return std::span(placed_).subspan(first_placed_[rank], first_placed_[rank + 1] - first_placed_[rank]);
}

std::span<const PlacedRow> RowLayout::rows_between(int top, int bottom) const {
  return row_layout::between(placed_, top, bottom);
}

std::span<const PlacedRank> RowLayout::ranks_between(int top, int bottom) const {
  return row_layout::between(ranks_, top, bottom);
}

const PlacedRow* RowLayout::at(int y) const {
  const auto found = rows_between(y, y + 1);
  return found.empty() ? nullptr : &found.front();
}

const PlacedRow* RowLayout::row_of(const SliceRef& slice) const {
  const auto rows = rows_of(slice.rank);
  const auto found = std::ranges::find_if(
      rows, [&](const PlacedRow& placed) { return placed.row->place_of(slice, level_height_).has_value(); });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace paceline::viewer
