// SPDX-License-Identifier: Apache-2.0
// Bookmarks, hidden rows and the user's own order of the ranks.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "viewer/session/view_state.h"

namespace paceline::viewer {

void ViewState::select_range_of_slice() {
  std::optional<TimeRange> range;
  for (const SliceRef& ref : selected_) {
    const auto& slices = slices_of(run_, ref);
    const double start = double(slices.start_ns[ref.slice]), end = double(slices.end_ns(ref.slice));
    range = range ? TimeRange{std::min(range->begin_ns, start), std::max(range->end_ns, end)} : TimeRange{start, end};
  }
  if (range) select_range(range);
}

void ViewState::set_bookmarks(std::vector<Bookmark> bookmarks) {
  std::ranges::stable_sort(bookmarks, {}, &Bookmark::time_ns);
  if (bookmarks == bookmarks_) return;
  bookmarks_ = std::move(bookmarks);
  Q_EMIT bookmarks_changed();
}

void ViewState::toggle_bookmark(double time_ns) {
  constexpr double near_pixels = 5;
  std::vector<Bookmark> changed = bookmarks_;
  const auto close = [&](const Bookmark& one) {
    return std::abs(one.time_ns - time_ns) <= near_pixels * axis_.ns_per_pixel();
  };
  if (std::erase_if(changed, close) == 0) changed.push_back({.time_ns = time_ns, .text = {}});
  set_bookmarks(std::move(changed));
}

void ViewState::toggle_bookmark_here() {
  if (pointer_) return toggle_bookmark(axis_.time_at(*pointer_));
  if (const auto at = selected()) return toggle_bookmark(double(slices_of(run_, *at).start_ns[at->slice]));
  toggle_bookmark(axis_.time_at(axis_.width() / 2.0));
}

void ViewState::jump_to_bookmark(bool next) {
  const TimeRange view = axis_.visible();
  // The view cannot centre on a bookmark near the ends of the run, so the last one that was visited counts.
  const bool at_one = visited_ns_ >= view.begin_ns && visited_ns_ <= view.end_ns;
  const double beside = next ? axis_.ns_per_pixel() : -axis_.ns_per_pixel();  // one in the middle was visited
  const double from = at_one ? visited_ns_ : (view.begin_ns + view.end_ns) / 2 + beside;
  const auto to = next ? std::ranges::upper_bound(bookmarks_, from, {}, &Bookmark::time_ns)
                       : std::ranges::lower_bound(bookmarks_, from, {}, &Bookmark::time_ns);
  if (next ? to == bookmarks_.end() : to == bookmarks_.begin()) return;
  visited_ns_ = next ? to->time_ns : (to - 1)->time_ns;
  jump_to({visited_ns_ - view.length() / 2, visited_ns_ + view.length() / 2});
}

void ViewState::set_path_shown(bool shown) {
  path_shown_ = shown;
  Q_EMIT path_changed();
}

void ViewState::set_states_shown(bool shown) {
  if (std::exchange(states_shown_, shown) != shown) Q_EMIT folds_changed();
}

std::vector<std::size_t> ViewState::ranks_in_order() const {
  std::vector<std::size_t> order;
  for (const RankGroup& group : groups_) order.insert(order.end(), group.ranks.begin(), group.ranks.end());
  for (std::size_t rank = 0; rank < folds_.size(); ++rank) {
    if (folds_[rank].hidden || folds_[rank].filtered_out) order.push_back(rank);
  }
  return order;
}

void ViewState::move_rank(std::size_t rank, int steps) {
  const std::vector<std::size_t> order = ranks_in_order();
  const auto to = std::ranges::find(order, rank) - order.begin() + steps;
  if (to >= 0 && to < std::ssize(order)) move_rank_to(rank, order[static_cast<std::size_t>(to)]);
}

void ViewState::move_rank_to(std::size_t rank, std::size_t other) {
  std::vector<std::size_t> order = ranks_in_order();
  const auto from = std::ranges::find(order, rank), to = std::ranges::find(order, other);
  if (from < to) {
    std::rotate(from, from + 1, to + 1);
  } else {
    std::rotate(to, from, from + 1);
  }
  set_own_order(std::move(order));
}

void ViewState::set_own_order(std::vector<std::size_t> ranks) {
  own_order_ = std::move(ranks);
  sort_ranks(RankOrder::own);
}

void ViewState::set_rank_hidden(std::size_t rank, bool hidden) {
  if (folds_[rank].hidden == hidden) return;
  folds_[rank].hidden = hidden;
  arrange();
  Q_EMIT folds_changed();
}

bool ViewState::row_pinned(std::size_t rank, const QString& name) const {
  return std::ranges::find(pinned_rows_, RowName(rank, name)) != pinned_rows_.end();
}

void ViewState::set_row_pinned(std::size_t rank, const QString& name, bool pinned) {
  if (name.isEmpty() || row_pinned(rank, name) == pinned) return;
  if (pinned) {
    pinned_rows_.emplace_back(rank, name);
  } else {
    std::erase(pinned_rows_, RowName(rank, name));
  }
  Q_EMIT folds_changed();
}

void ViewState::hide_rows(const QString& name) {
  if (hidden_rows_.insert(name).second) Q_EMIT folds_changed();
}

void ViewState::show_hidden() {
  hidden_rows_.clear();
  for (Folds& rank : folds_) rank.hidden = false;
  arrange();
  Q_EMIT folds_changed();
}

}  // namespace paceline::viewer
