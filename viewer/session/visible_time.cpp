// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/visible_time.h"

#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <utility>

namespace paceline::viewer {

void VisibleTime::set_names_width(int pixels) {
  constexpr int narrowest = 120, widest = 800;
  names_width_ = std::clamp(pixels, narrowest, widest);
  Q_EMIT view_changed();
}

void VisibleTime::jump_to(TimeRange range) {
  constexpr std::size_t history_length = 200;
  const TimeRange before = axis_.visible();
  axis_.show(range);
  if (axis_.visible() == before) return;
  history_.push_back(before);
  if (history_.size() > history_length) history_.erase(history_.begin());
  future_.clear();
  Q_EMIT view_changed();
}

void VisibleTime::show_last(std::vector<TimeRange>& views, std::vector<TimeRange>& others) {
  if (views.empty()) return;
  const TimeRange last = views.back();
  views.pop_back();
  others.push_back(axis_.visible());
  show_part(last);
}

void VisibleTime::jump_to_iteration(int steps) {
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

std::optional<TimeRange> VisibleTime::range_of_iterations(std::int64_t first, std::int64_t last) const {
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

bool VisibleTime::show_iterations(std::int64_t first, std::int64_t last) {
  const auto range = range_of_iterations(first, last);
  if (range) jump_to({range->begin_ns - 0.02 * range->length(), range->end_ns + 0.02 * range->length()});
  return range.has_value();
}

void VisibleTime::zoom_to(const SliceRef& ref) {
  const auto& slices = slices_of(run_, ref);
  const auto start = static_cast<double>(slices.start_ns[ref.slice]);
  const double length = std::max(static_cast<double>(slices.duration_ns[ref.slice]), TimeAxis::shortest_view_ns / 2);
  jump_to({start - length / 4, start + length * 1.25});
}

void VisibleTime::turn_wheel(const QWheelEvent& event, double column) {
  const QPoint turned = event.angleDelta();
  const double steps = (turned.y() != 0 ? turned.y() : turned.x()) / 120.0;
  if (event.modifiers() & Qt::ShiftModifier || turned.y() == 0) {
    pan(-steps * pan_share * axis_.width());
  } else {
    zoom(column, std::pow(event.modifiers() & Qt::ControlModifier ? 1.1 : 1.35, -steps));
  }
}

void VisibleTime::go_to_time(double time_ns) {
  const double half = std::min(axis_.visible().length(), axis_.whole().length() / 20) / 2;
  jump_to({time_ns - half, time_ns + half});
  mark_time(time_ns);
}

void VisibleTime::mark_time(std::optional<double> time_ns) {
  if (marked_ns_ == time_ns) return;
  marked_ns_ = time_ns;
  Q_EMIT view_changed();
}

void VisibleTime::set_bookmarks(std::vector<Bookmark> bookmarks) {
  std::ranges::stable_sort(bookmarks, {}, &Bookmark::time_ns);
  if (bookmarks == bookmarks_) return;
  bookmarks_ = std::move(bookmarks);
  Q_EMIT bookmarks_changed();
}

void VisibleTime::toggle_bookmark(double time_ns) {
  const double near_ns = 5 * axis_.ns_per_pixel();
  std::vector<Bookmark> changed = bookmarks_;
  const auto close = [&](const Bookmark& one) { return std::abs(one.time_ns - time_ns) <= near_ns; };
  if (std::erase_if(changed, close) == 0) changed.push_back({.time_ns = time_ns, .text = {}});
  set_bookmarks(std::move(changed));
}

void VisibleTime::toggle_bookmark_here(const std::optional<SliceRef>& slice) {
  if (pointer_) return toggle_bookmark(axis_.time_at(*pointer_));
  if (slice) return toggle_bookmark(double(slices_of(run_, *slice).start_ns[slice->slice]));
  toggle_bookmark(axis_.time_at(axis_.width() / 2.0));
}

void VisibleTime::jump_to_bookmark(bool next) {
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

}  // namespace paceline::viewer
