// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/view_state.h"

#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

namespace paceline::viewer {

ViewState::ViewState(const Run& run) : run_(run), axis_(run.begin_ns, run.end_ns), folds_(run.ranks.size()) {
  for (Folds& rank : folds_) rank.collapsed = folds_.size() >= many_ranks;
  arrange();
}

void ViewState::set_width(int pixels) {
  axis_.set_width(pixels);
  Q_EMIT view_changed();
}

void ViewState::set_limits(TimeRange limits) {
  axis_.set_whole(limits);
  Q_EMIT view_changed();
}

void ViewState::jump_to(TimeRange range) {
  constexpr std::size_t history_length = 200;
  const TimeRange before = axis_.visible();
  axis_.show(range);
  if (axis_.visible() == before) return;
  history_.push_back(before);
  if (history_.size() > history_length) history_.erase(history_.begin());
  future_.clear();
  Q_EMIT view_changed();
}

void ViewState::show_previous() {
  if (history_.empty()) return;
  const TimeRange before = history_.back();
  history_.pop_back();
  future_.push_back(axis_.visible());
  show_part(before);
}

void ViewState::show_next() {
  if (future_.empty()) return;
  const TimeRange after = future_.back();
  future_.pop_back();
  history_.push_back(axis_.visible());
  show_part(after);
}

void ViewState::jump_to_iteration(int steps) {
  for (std::size_t rank = 0; rank < run_.ranks.size(); ++rank) {
    const auto& iterations = run_.index->iterations(rank);
    if (iterations.empty()) continue;
    const TimeRange view = axis_.visible();
    const double middle = (view.begin_ns + view.end_ns) / 2;
    const auto after =
        std::ranges::partition_point(iterations, [&](const auto& one) { return double(one.start_ns) <= middle; });
    const auto at = std::clamp<std::ptrdiff_t>(after - iterations.begin() - 1 + steps, 0, std::ssize(iterations) - 1);
    const auto& iteration = iterations[static_cast<std::size_t>(at)];
    const auto begin = static_cast<double>(iteration.start_ns), length = static_cast<double>(iteration.duration_ns);
    jump_to({begin - 0.03 * length, begin + 1.03 * length});
    Q_EMIT iteration_shown(iteration.number);
    return;
  }
}

std::optional<TimeRange> ViewState::range_of_iterations(std::int64_t first, std::int64_t last) const {
  for (std::size_t rank = 0; rank < run_.ranks.size(); ++rank) {
    std::optional<TimeRange> range;
    for (const auto& iteration : run_.index->iterations(rank)) {
      if (iteration.number < first || iteration.number > last) continue;
      const auto begin = static_cast<double>(iteration.start_ns);
      const double end = begin + static_cast<double>(iteration.duration_ns);
      range = range ? TimeRange{std::min(range->begin_ns, begin), std::max(range->end_ns, end)} : TimeRange{begin, end};
    }
    if (range) return range;
  }
  return std::nullopt;
}

bool ViewState::show_iterations(std::int64_t first, std::int64_t last) {
  const auto range = range_of_iterations(first, last);
  if (range) jump_to({range->begin_ns - 0.02 * range->length(), range->end_ns + 0.02 * range->length()});
  return range.has_value();
}

void ViewState::zoom_to(const SliceRef& ref) {
  const auto& slices = slices_of(run_, ref);
  const auto start = static_cast<double>(slices.start_ns[ref.slice]);
  const double length = std::max(static_cast<double>(slices.duration_ns[ref.slice]), TimeAxis::shortest_view_ns / 2);
  jump_to({start - length / 4, start + length * 1.25});
}

void ViewState::zoom_to_selection() {
  if (selected_range_) {
    jump_to(*selected_range_);
  } else if (selected()) {
    zoom_to(*selected());
  }
}

void ViewState::zoom(double x, double factor) {
  axis_.zoom(x, factor);
  Q_EMIT view_changed();
}

void ViewState::zoom_at_pointer(double factor) { zoom(pointer_.value_or(axis_.width() / 2.0), factor); }

void ViewState::pan(double pixels) {
  axis_.pan(pixels);
  Q_EMIT view_changed();
}

void ViewState::turn_wheel(const QWheelEvent& event, double column) {
  const QPoint turned = event.angleDelta();
  const double steps = (turned.y() != 0 ? turned.y() : turned.x()) / 120.0;
  if (event.modifiers() & Qt::ShiftModifier || turned.y() == 0) {
    pan(-steps * pan_share * axis_.width());
  } else {
    zoom(column, std::pow(event.modifiers() & Qt::ControlModifier ? 1.1 : 1.35, -steps));
  }
}

void ViewState::show_part(TimeRange range) {
  axis_.show(range);
  Q_EMIT view_changed();
}

void ViewState::select(std::optional<SliceRef> slice) {
  std::vector<SliceRef> wanted;
  if (slice) wanted.push_back(*slice);
  if (wanted == selected_) return;
  selected_ = std::move(wanted);
  Q_EMIT selection_changed();
}

void ViewState::toggle_selected(const SliceRef& slice) {
  if (std::erase(selected_, slice) == 0) selected_.push_back(slice);
  Q_EMIT selection_changed();
}

void ViewState::reveal_closely(const SliceRef& ref) {
  constexpr double least_pixels = 4, share = 0.1;
  const auto& slices = slices_of(run_, ref);
  const auto length = static_cast<double>(slices.duration_ns[ref.slice]);
  if (!ref.mark && length < least_pixels * axis_.ns_per_pixel()) {
    const double half = std::max(length / share, TimeAxis::shortest_view_ns) / 2;
    const double middle = static_cast<double>(slices.start_ns[ref.slice]) + length / 2;
    jump_to({middle - half, middle + half});
  }
  reveal(ref);
}

void ViewState::reveal(const SliceRef& ref) {
  set_rank_hidden(ref.rank, false);
  set_host_folded(QString::fromStdString(run_.trace.ranks[ref.rank].host), false);
  set_collapsed(ref.rank, false);
  const auto& slices = slices_of(run_, ref);
  const auto start = static_cast<double>(slices.start_ns[ref.slice]);
  const auto end = static_cast<double>(slices.end_ns(ref.slice));
  const TimeRange view = axis_.visible();
  if (end < view.begin_ns || start > view.end_ns) {
    axis_.center_on((start + end) / 2);
    Q_EMIT view_changed();
  }
  Q_EMIT revealed(ref);
  select(ref);
}

void ViewState::go_to(const Place& place) {
  if (place.range) jump_to(*place.range);
  if (place.slice) return place.range ? reveal(*place.slice) : reveal_closely(*place.slice);
  if (!place.rank) return;
  set_rank_hidden(*place.rank, false);
  set_host_folded(QString::fromStdString(run_.trace.ranks[*place.rank].host), false);
  Q_EMIT rank_wanted(*place.rank);
}

void ViewState::go_to_time(double time_ns) {
  const double half = std::min(axis_.visible().length(), axis_.whole().length() / 20) / 2;
  jump_to({time_ns - half, time_ns + half});
  mark_time(time_ns);
}

void ViewState::mark_time(std::optional<double> time_ns) {
  if (marked_ns_ == time_ns) return;
  marked_ns_ = time_ns;
  Q_EMIT view_changed();
}

void ViewState::select_range(std::optional<TimeRange> range, std::set<std::size_t> ranks) {
  if (range == selected_range_ && ranks == selected_ranks_) return;
  selected_range_ = range;
  selected_ranks_ = std::move(ranks);
  Q_EMIT range_changed();
}

void ViewState::set_collapsed(std::size_t rank, bool collapsed) {
  if (folds_[rank].collapsed == collapsed) return;
  folds_[rank].collapsed = collapsed;
  Q_EMIT folds_changed();
}

void ViewState::set_all_collapsed(bool collapsed) {
  for (Folds& rank : folds_) rank.collapsed = collapsed;
  Q_EMIT folds_changed();
}

void ViewState::set_counters_unfolded(std::size_t rank, bool unfolded) {
  folds_[rank].counters_unfolded = unfolded;
  Q_EMIT folds_changed();
}

void ViewState::set_all_counters_unfolded(bool unfolded) {
  for (Folds& rank : folds_) rank.counters_unfolded = unfolded;
  Q_EMIT folds_changed();
}

void ViewState::set_names_width(int pixels) {
  constexpr int narrowest = 120, widest = 800;
  names_width_ = std::clamp(pixels, narrowest, widest);
  Q_EMIT view_changed();
}

void ViewState::set_filter(const QString& text, KindSets kinds) {
  filter_ = text;
  shown_kinds_ = std::move(kinds);
  const auto shows_nothing = [](const KindSet& set) { return std::ranges::find(*set, true) == set->end(); };
  const bool all_alike = std::ranges::all_of(shown_kinds_, [&](const KindSet& set) { return set == shown_kinds_[0]; });
  for (std::size_t rank = 0; rank < folds_.size(); ++rank) {
    folds_[rank].filtered_out = !all_alike && shows_nothing(shown_kinds_[rank]);
  }
  arrange();
  Q_EMIT filter_changed();
}

void ViewState::set_hits(HitList hits) {
  hits_ = std::move(hits);
  Q_EMIT hits_changed();
}

void ViewState::sort_ranks(RankOrder order) {
  rank_order_ = order;
  arrange();
  Q_EMIT folds_changed();
}

void ViewState::set_pinned(std::size_t rank, bool pinned) {
  folds_[rank].pinned = pinned;
  arrange();
  Q_EMIT folds_changed();
}

void ViewState::set_host_folded(const QString& host, bool folded) {
  const bool changed = folded ? folded_hosts_.insert(host).second : folded_hosts_.erase(host) > 0;
  if (!changed) return;
  arrange();
  Q_EMIT folds_changed();
}

std::int64_t ViewState::most_waiting_caused_ns() const {
  std::int64_t most = 0;
  for (const Folds& rank : folds_) most = std::max(most, rank.waiting_caused_ns);
  return most;
}

void ViewState::set_waiting_caused(const std::vector<std::int64_t>& ns) {
  for (std::size_t rank = 0; rank < folds_.size(); ++rank) folds_[rank].waiting_caused_ns = ns[rank];
  arrange();
  Q_EMIT folds_changed();
}

void ViewState::arrange() {
  const auto& ranks = run_.trace.ranks;
  std::vector<std::size_t> order(ranks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto sort_by = [&](auto key) { std::ranges::stable_sort(order, {}, key); };
  switch (rank_order_) {
    case RankOrder::number:
      break;
    case RankOrder::host:
      sort_by([&](std::size_t rank) { return std::string_view(ranks[rank].host); });
      break;
    case RankOrder::waiting_caused:
      sort_by([&](std::size_t rank) { return -folds_[rank].waiting_caused_ns; });
      break;
    case RankOrder::duration:
      sort_by([&](std::size_t rank) { return ranks[rank].start_ns - ranks[rank].end_ns; });
      break;
    case RankOrder::own:
      order = own_order_;
  }
  std::erase_if(order, [&](std::size_t rank) { return folds_[rank].hidden || folds_[rank].filtered_out; });
  std::ranges::stable_sort(order, {}, [&](std::size_t rank) { return !folds_[rank].pinned; });
  const bool by_host = rank_order_ == RankOrder::number || rank_order_ == RankOrder::host;
  const bool headings = by_host && order.size() >= many_ranks && run_.hosts.size() > 1;
  groups_.clear();
  for (const std::size_t rank : order) {
    const bool heading = headings && !folds_[rank].pinned;
    const QString host = heading ? QString::fromStdString(ranks[rank].host) : QString();
    if (groups_.empty() || groups_.back().host != host) {
      groups_.push_back({.host = host, .ranks = {}, .folded = heading && folded_hosts_.contains(host)});
    }
    groups_.back().ranks.push_back(rank);
  }
}

void ViewState::set_panels_shown(bool shown) {
  panels_shown_ = shown;
  Q_EMIT panels_changed();
}

}  // namespace paceline::viewer
