// What part of a run is looked at: the range of time, the selection and the folded rows. Widgets change it and observe
// it; none reaches into another.
#pragma once

#include <QObject>
#include <optional>
#include <vector>

#include "viewer/session/run.h"
#include "viewer/session/time_axis.h"

class QWheelEvent;

namespace paceline::viewer {

class ViewState : public QObject {
  Q_OBJECT

 public:
  enum class Step { previous, next, outward, inward };  // from a slice to another one

  static constexpr double pan_share = 0.15;  // of the view, by which a key or a step of the wheel pans

  explicit ViewState(const Run& run);

  // The visible range over the columns of the timeline.
  const TimeAxis& axis() const { return axis_; }
  void set_width(int pixels);

  // Jumps: the range before is kept for show_previous().
  void show_all() { jump_to(axis_.whole()); }
  void jump_to(TimeRange range);
  void show_previous();
  // Iterations are those of the first rank that has any; `steps` is counted from the one in the middle of the view.
  void jump_to_iteration(int steps);
  // Zooms to the iterations numbered first … last; false if there are none.
  bool show_iterations(std::int64_t first, std::int64_t last);
  // Zooms so that the slice takes two thirds of the width.
  void zoom_to(const SliceRef& slice);
  void zoom_to_selection();

  // Moves: small steps that are not kept.
  void zoom(double x, double factor);  // x in columns of the axis
  void zoom_at_pointer(double factor);
  void pan(double pixels);
  // The mouse wheel over a column: zooms there, in fine steps with Ctrl, or pans with Shift or a horizontal wheel.
  void turn_wheel(const QWheelEvent& event, double column);
  void show_part(TimeRange range);
  // The column under the mouse pointer, if it is over the timeline.
  void set_pointer(std::optional<double> column) { pointer_ = column; }

  std::optional<SliceRef> selected() const { return selected_; }
  void select(std::optional<SliceRef> slice);
  // Selects, and brings the slice into view if it is not.
  void reveal(const SliceRef& slice);
  std::optional<TimeRange> selected_range() const { return selected_range_; }
  void select_range(std::optional<TimeRange> range);

  // Of a collapsed rank only the strip of phases is shown; of its counters only the first, unless they are unfolded.
  bool collapsed(std::size_t rank) const { return folds_[rank].collapsed; }
  void set_collapsed(std::size_t rank, bool collapsed);
  void set_all_collapsed(bool collapsed);
  bool counters_unfolded(std::size_t rank) const { return folds_[rank].counters_unfolded; }
  void set_counters_unfolded(std::size_t rank, bool unfolded);
  void set_all_counters_unfolded(bool unfolded);
  bool panels_shown() const { return panels_shown_; }
  void set_panels_shown(bool shown);

 Q_SIGNALS:
  void view_changed();
  void selection_changed();
  void range_changed();
  void folds_changed();
  void panels_changed();
  void revealed(const paceline::viewer::SliceRef& slice);  // scroll to it

  // What an action asks of the widget that can do it.
  void search_wanted();
  void timeline_wanted();  // the keyboard goes back to the timeline
  void page_wanted(int pages);
  void step_wanted(paceline::viewer::ViewState::Step step);

 private:
  struct Folds {
    bool collapsed = false, counters_unfolded = false;
  };

  const Run& run_;
  TimeAxis axis_;
  std::vector<TimeRange> history_;
  std::optional<double> pointer_;
  std::optional<SliceRef> selected_;
  std::optional<TimeRange> selected_range_;
  std::vector<Folds> folds_;  // of each rank
  bool panels_shown_ = true;
};

}  // namespace paceline::viewer
