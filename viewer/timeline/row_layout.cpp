// SPDX-License-Identifier: Apache-2.0
#include "viewer/timeline/row_layout.h"

#include <algorithm>

namespace paceline::viewer {
namespace row_layout {

bool is_shown(const Row& row, const Arrangement& arrangement) {
  if (row.hidden() == Row::Hidden::never) return true;
  if (!row.shown() || (row.is_states() && !arrangement.states_shown())) return false;
  if (!arrangement.hidden_rows().empty() && arrangement.hidden_rows().contains(row.name())) return false;
  if (arrangement.collapsed(row.rank()) || arrangement.row_pinned(row.rank(), row.name())) return false;
  return row.hidden() == Row::Hidden::with_rank || arrangement.counters_unfolded(row.rank());
}

// The elements, sorted by height, of which a part is between top and bottom.
template <class Placed>
std::span<const Placed> between(const std::vector<Placed>& all, int top, int bottom) {
  const auto begin = std::ranges::partition_point(all, [&](const Placed& one) { return one.end_y <= top; });
  const auto end = std::partition_point(begin, all.end(), [&](const Placed& one) { return one.y < bottom; });
  return {begin, end};
}

}  // namespace row_layout

RowLayout::RowLayout(Document& document, const Arrangement& arrangement)
    : document_(document), arrangement_(arrangement) {
  for (std::size_t rank = 0; rank < document.run().ranks.size(); ++rank) {
    first_.push_back(all_.size());
    add_rows(document, rank, all_);
  }
  first_.push_back(all_.size());
  place(0);
}

void RowLayout::place(int room) {
  ++placings_;
  placed_.clear();
  hosts_.clear();
  ranks_.clear();
  placed_of_.assign(first_.size() - 1, {});
  int levels = 0, pixels = 0, folded = 0;  // the height of all rows but folded ones is levels × level height + pixels
  const auto add = [&](Row& row) {
    placed_.push_back({.row = &row, .folded = false, .order = ranks_.size()});
    levels += row.height().levels;
    pixels += row.height().pixels + margin;
  };
  for (const auto& [rank, name] : arrangement_.pinned_rows()) {
    for (std::size_t row = first_[rank]; row < first_[rank + 1] && !arrangement_.rank_hidden(rank); ++row) {
      if (all_[row]->name() != name || !all_[row]->shown()) continue;
      if (all_[row]->is_states() && !arrangement_.states_shown()) continue;
      add(*all_[row]);
      placed_.back().pinned = true;
    }
  }
  pinned_ = placed_.size();
  for (const RankGroup& group : arrangement_.groups()) {
    if (!group.host.isEmpty()) {
      hosts_.push_back(make_host_row(document_, group));
      add(*hosts_.back());
    }
    for (std::size_t i = 0; i < group.ranks.size() && !group.folded; ++i) {
      const std::size_t rank = group.ranks[i], begin = placed_.size();
      if (arrangement_.collapsed(rank)) {
        placed_.push_back({.row = all_[first_[rank]].get(), .folded = true, .order = ranks_.size()});
        folded += !arrangement_.pinned(rank);
        pixels += arrangement_.pinned(rank) ? pinned_folded : 0;
      } else {
        for (std::size_t row = first_[rank]; row < first_[rank + 1]; ++row) {
          if (row_layout::is_shown(*all_[row], arrangement_)) add(*all_[row]);
        }
        pixels += 2 * margin;
      }
      placed_of_[rank] = {begin, placed_.size()};
      ranks_.push_back({.rank = rank});
    }
  }
  int folded_height = 0;
  if (folded > 0) {
    folded_height = std::clamp((room - pixels - levels * lowest_level) / folded, lowest_folded, highest_folded);
  }
  // Even numbers of pixels, as in 18, 20, … 26.
  const int fitting = (room - pixels - folded * folded_height) / std::max(levels, 1) / 2 * 2;
  level_height_ = std::clamp(fitting, lowest_level, highest_level);
  int y = 0;
  const auto put = [&](PlacedRow& placed) {
    const Row::Height height = placed.row->height();
    placed.y = y;
    const int strip_height = placed.folded && arrangement_.pinned(placed.row->rank()) ? pinned_folded : folded_height;
    placed.end_y = y + (placed.folded ? strip_height : height.levels * level_height_ + height.pixels);
    y = placed.end_y + (placed.folded ? 0 : margin);
  };
  std::size_t next = 0;
  for (; next < pinned_; ++next) put(placed_[next]);
  pinned_height_ = y;
  for (PlacedRank& place : ranks_) {
    const auto [begin, end] = placed_of_[place.rank];
    for (; next < begin; ++next) put(placed_[next]);  // headings
    const int outside = placed_[begin].folded ? 0 : margin;
    place.y = y;
    y += outside;
    for (; next < end; ++next) put(placed_[next]);
    place.end_y = y += outside;
    if (arrangement_.pinned(place.rank)) pinned_height_ = y;
  }
  for (; next < placed_.size(); ++next) put(placed_[next]);
  height_ = y;
}

bool RowLayout::prepare_between(int top, int bottom) const {
  bool misplaced = false;
  for (const PlacedRow& placed : rows_between(top, bottom)) {
    placed.row->prepare();
    const Row::Height height = placed.row->height();
    misplaced = misplaced || !placed.row->shown() ||
                (!placed.folded && placed.end_y - placed.y != height.levels * level_height_ + height.pixels);
  }
  return misplaced;
}

void RowLayout::set_filter(const KindSets& kinds) {
  for (const auto& row : all_) row->set_filter(kinds.empty() ? nullptr : kinds[row->rank()]);
}

std::optional<std::size_t> RowLayout::rank_beside(std::size_t rank, int steps) const {
  const auto from = std::ranges::find(ranks_, rank, &PlacedRank::rank);
  if (from == ranks_.end()) return std::nullopt;
  const std::ptrdiff_t to = from - ranks_.begin() + steps;
  if (to < 0 || to >= std::ssize(ranks_)) return std::nullopt;
  return ranks_[static_cast<std::size_t>(to)].rank;
}

std::span<const PlacedRow> RowLayout::rows_of(std::size_t rank) const {
  const auto [begin, end] = placed_of_[rank];
  return std::span(placed_).subspan(begin, end - begin);
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
  const auto shows = [&](const PlacedRow& placed) { return placed.row->place_of(slice, level_height_).has_value(); };
  for (const auto rows : {std::span<const PlacedRow>(placed_).first(pinned_), rows_of(slice.rank)}) {
    if (const auto found = std::ranges::find_if(rows, shows); found != rows.end()) return &*found;
  }
  return nullptr;
}

}  // namespace paceline::viewer
