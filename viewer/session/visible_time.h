// SPDX-License-Identifier: Apache-2.0
// The range of time that is seen, beside the column of names: its moves, the views before and after it, and the times
// that the user marked.
#pragma once

#include <QObject>
#include <QString>
#include <limits>
#include <optional>
#include <vector>

#include "viewer/session/run.h"
#include "viewer/session/time_axis.h"

class QWheelEvent;

namespace paceline::viewer {

// A place in time that the user wants to find again.
struct Bookmark {
  double time_ns = 0;
  QString text;  // may be empty
  bool operator==(const Bookmark&) const = default;
};

class VisibleTime : public QObject {
  Q_OBJECT

 public:
  static constexpr double pan_share = 0.15;  // of the view, by which a key or a step of the wheel pans

  explicit VisibleTime(const Run& run) : run_(run), axis_(run.begin_ns, run.end_ns) {}

  // The visible range over the columns of the timeline.
  const TimeAxis& axis() const { return axis_; }
  void set_width(int pixels) { change(&TimeAxis::set_width, pixels); }
  // How far the view may go: the whole run at first.
  void set_limits(TimeRange limits) { change(&TimeAxis::set_whole, limits); }
  // The width of the column of names, in pixels.
  int names_width() const { return names_width_; }
  void set_names_width(int pixels);

  // Jumps: the range before is kept for show_previous(), which keeps its own for show_next().
  void show_all() { jump_to(axis_.whole()); }
  void jump_to(TimeRange range);
  void show_previous() { show_last(history_, future_); }
  void show_next() { show_last(future_, history_); }
  // Iterations are those of the first rank that has any; `steps` is counted from the one in the middle of the view.
  void jump_to_iteration(int steps);
  // From the begin of iteration `first` to the end of `last`, of the first rank that has any of them.
  std::optional<TimeRange> range_of_iterations(std::int64_t first, std::int64_t last) const;
  // Zooms to them, with a margin; false if there are none.
  bool show_iterations(std::int64_t first, std::int64_t last);
  // Zooms so that the slice takes two thirds of the width.
  void zoom_to(const SliceRef& slice);

  // Moves: small steps that are not kept.
  void zoom(double x, double factor) { change(&TimeAxis::zoom, x, factor); }  // x in columns of the axis
  void zoom_at_pointer(double factor) { zoom(pointer_.value_or(axis_.width() / 2.0), factor); }
  void pan(double pixels) { change(&TimeAxis::pan, pixels); }
  // The mouse wheel over a column: zooms there, in fine steps with Ctrl, or pans with Shift or a horizontal wheel.
  void turn_wheel(const QWheelEvent& event, double column);
  void show_part(TimeRange range) { change(&TimeAxis::show, range); }
  void center_on(double time_ns) { change(&TimeAxis::center_on, time_ns); }
  // The column under the mouse pointer, if it is over the timeline.
  void set_pointer(std::optional<double> column) { pointer_ = column; }

  // Shows the time in the middle of the view, with a mark that stays until mark_time() moves or removes it. A view of
  // more than a twentieth of the run is narrowed to that.
  void go_to_time(double time_ns);
  std::optional<double> marked_time() const { return marked_ns_; }
  void mark_time(std::optional<double> time_ns);

  // By time. A bookmark is set where there is none within 5 pixels; otherwise that one is removed.
  const std::vector<Bookmark>& bookmarks() const { return bookmarks_; }
  void set_bookmarks(std::vector<Bookmark> bookmarks);
  void toggle_bookmark(double time_ns);
  // At the pointer, or else at the start of the slice, or in the middle of the view.
  void toggle_bookmark_here(const std::optional<SliceRef>& slice);
  // Goes to the bookmark after the one that was visited last, or before it. If that is not in view, the middle of the
  // view counts.
  void jump_to_bookmark(bool next);

 Q_SIGNALS:
  void view_changed();                        // the range, the mark or the width of either column
  void iteration_shown(std::int64_t number);  // by jump_to_iteration()
  void bookmarks_changed();

 private:
  template <class Move, class... Arguments>
  void change(Move move, Arguments... arguments) {
    (axis_.*move)(arguments...);
    Q_EMIT view_changed();
  }
  // Shows the last one of these views, and keeps the present one in the other list.
  void show_last(std::vector<TimeRange>& views, std::vector<TimeRange>& others);

  const Run& run_;
  TimeAxis axis_;
  int names_width_ = default_names_width;
  std::vector<TimeRange> history_, future_;  // the views before and after this one, the nearest last
  std::optional<double> pointer_, marked_ns_;
  std::vector<Bookmark> bookmarks_;
  double visited_ns_ = std::numeric_limits<double>::quiet_NaN();  // the bookmark that was jumped to last
};

}  // namespace paceline::viewer
