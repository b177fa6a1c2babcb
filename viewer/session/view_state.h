// SPDX-License-Identifier: Apache-2.0
// What part of a run is looked at: the range of time, the selection, the filter, and the order and the folding of the
// rows. Widgets change it and observe it; none reaches into another.
#pragma once

#include <QObject>
#include <QStringList>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "viewer/session/run.h"
#include "viewer/session/time_axis.h"

class QWheelEvent;

namespace paceline::viewer {

// Whether slices of each kind are shown; nullptr: all are.
using KindSet = std::shared_ptr<const std::vector<bool>>;
// Of each rank; empty: everything is shown.
using KindSets = std::vector<KindSet>;

// A place in time that the user wants to find again.
struct Bookmark {
  double time_ns = 0;
  QString text;  // may be empty
  bool operator==(const Bookmark&) const = default;
};

// Ranks that stand together on screen, as indices into Run::ranks.
struct RankGroup {
  QString host;  // empty where the group has no heading
  std::vector<std::size_t> ranks;
  bool folded = false;
};

// Slices and marks that a search found, by start.
using HitList = std::shared_ptr<const std::vector<SliceRef>>;

// Where a finding or a row of a table leads to: all that is known about it.
struct Place {
  std::optional<std::size_t> rank = {};  // an index into Run::ranks
  std::optional<TimeRange> range = {};
  std::optional<SliceRef> slice = {};

  bool anywhere() const { return rank || range || slice; }
};

// Whose stacks are compared with those of the others: a rank's or an iteration's, by its number.
struct StackPlace {
  enum class Of { rank, iteration };

  Of of = Of::rank;
  std::int64_t number = 0;
  QString function = {};  // that explains the difference; may be empty
};

class ViewState : public QObject {
  Q_OBJECT

 public:
  // From a slice to another one: on its level, to another level, to another row, to the same row of another rank, or to
  // the slice of the same name in its row.
  enum class Step {
    previous,
    next,
    outward,
    inward,
    row_above,
    row_below,
    rank_above,
    rank_below,
    previous_of_name,
    next_of_name
  };
  enum class RankOrder { number, host, waiting_caused, duration, own };
  static constexpr std::size_t many_ranks = 9;  // from here on, ranks start folded, and hosts have headings
  static constexpr int default_names_width = 232;

  static constexpr double pan_share = 0.15;  // of the view, by which a key or a step of the wheel pans

  explicit ViewState(const Run& run);

  const Run& run() const { return run_; }

  // The visible range over the columns of the timeline.
  const TimeAxis& axis() const { return axis_; }
  void set_width(int pixels);
  // How far the view may go: the whole run at first.
  void set_limits(TimeRange limits);

  // Jumps: the range before is kept for show_previous(), which keeps its own for show_next().
  void show_all() { jump_to(axis_.whole()); }
  void jump_to(TimeRange range);
  void show_previous();
  void show_next();
  // Iterations are those of the first rank that has any; `steps` is counted from the one in the middle of the view.
  void jump_to_iteration(int steps);
  // From the begin of iteration `first` to the end of `last`, of the first rank that has any of them.
  std::optional<TimeRange> range_of_iterations(std::int64_t first, std::int64_t last) const;
  // Zooms to them, with a margin; false if there are none.
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

  // The slice that was selected last. Several can be selected together.
  std::optional<SliceRef> selected() const {
    return selected_.empty() ? std::nullopt : std::optional(selected_.back());
  }
  const std::vector<SliceRef>& selected_slices() const { return selected_; }
  void select(std::optional<SliceRef> slice);
  // Adds the slice to those that are selected, or takes it out.
  void toggle_selected(const SliceRef& slice);
  // Selects, and brings the slice into view if it is not.
  void reveal(const SliceRef& slice);
  // The same. A slice that would be too narrow to be seen is zoomed to, so that it takes a tenth of the width.
  void reveal_closely(const SliceRef& slice);
  // Shows the range of time, scrolls to the rank, and selects the slice. Does nothing for an empty place.
  void go_to(const Place& place);
  // Shows the time in the middle of the view, with a mark that stays until mark_time() moves or removes it. A view of
  // more than a twentieth of the run is narrowed to that.
  void go_to_time(double time_ns);
  std::optional<double> marked_time() const { return marked_ns_; }
  void mark_time(std::optional<double> time_ns);
  std::optional<TimeRange> selected_range() const { return selected_range_; }
  // With `ranks`, a box: the range on these ranks only, as indices. Without, it concerns all ranks.
  void select_range(std::optional<TimeRange> range, std::set<std::size_t> ranks = {});
  const std::set<std::size_t>& selected_ranks() const { return selected_ranks_; }
  // Selects the time of the selected slices, from the first start to the last end.
  void select_range_of_slice();

  // By time. A bookmark is set where there is none within 5 pixels; otherwise that one is removed.
  const std::vector<Bookmark>& bookmarks() const { return bookmarks_; }
  void set_bookmarks(std::vector<Bookmark> bookmarks);
  void toggle_bookmark(double time_ns);
  // At the pointer, or else at the start of the selected slice, or in the middle of the view.
  void toggle_bookmark_here();
  // Goes to the bookmark after the one that was visited last, or before it. If that is not in view, the middle of the
  // view counts.
  void jump_to_bookmark(bool next);

  // The critical path through the ranks is drawn over the rows.
  bool path_shown() const { return path_shown_; }
  void set_path_shown(bool shown);

  // The strips of the states of threads are shown below their slices.
  bool states_shown() const { return states_shown_; }
  void set_states_shown(bool shown);

  // Of a collapsed rank only the strip of phases is shown; of its counters only the first, unless they are unfolded.
  bool collapsed(std::size_t rank) const { return folds_[rank].collapsed; }
  void set_collapsed(std::size_t rank, bool collapsed);
  void set_all_collapsed(bool collapsed);
  bool counters_unfolded(std::size_t rank) const { return folds_[rank].counters_unfolded; }
  void set_counters_unfolded(std::size_t rank, bool unfolded);
  void set_all_counters_unfolded(bool unfolded);

  // The width of the column of names, in pixels.
  int names_width() const { return names_width_; }
  void set_names_width(int pixels);

  // Only slices that fit the filter are shown in the rows. The text is as in slice_filter.h, and `kinds` are those that
  // fit it; both are empty where everything is shown. Ranks that the text leaves out while it shows others are hidden.
  const QString& filter() const { return filter_; }
  const KindSets& shown_kinds() const { return shown_kinds_; }
  void set_filter(const QString& text, KindSets kinds);

  // What the last search found; nullptr if there was none.
  const HitList& hits() const { return hits_; }
  void set_hits(HitList hits);

  // The ranks from top to bottom: the pinned ones, then the others in their order, each host below a heading if there
  // are many ranks.
  const std::vector<RankGroup>& groups() const { return groups_; }
  RankOrder rank_order() const { return rank_order_; }
  void sort_ranks(RankOrder order);
  bool pinned(std::size_t rank) const { return folds_[rank].pinned; }
  void set_pinned(std::size_t rank, bool pinned);
  // Moves a rank among the others, up if negative, or to the place of another one. The order is the user's own from
  // then on.
  void move_rank(std::size_t rank, int steps);
  void move_rank_to(std::size_t rank, std::size_t other);
  // The ranks from top to bottom where the order is the user's own; every rank once.
  void set_own_order(std::vector<std::size_t> ranks);
  // Hidden ranks, and rows hidden by name on every rank ("loader").
  bool rank_hidden(std::size_t rank) const { return folds_[rank].hidden; }
  void set_rank_hidden(std::size_t rank, bool hidden);
  // Single rows above all ranks, each by its rank and its name, in the order in which they were pinned.
  using RowName = std::pair<std::size_t, QString>;
  const std::vector<RowName>& pinned_rows() const { return pinned_rows_; }
  bool row_pinned(std::size_t rank, const QString& name) const;
  void set_row_pinned(std::size_t rank, const QString& name, bool pinned);
  const std::set<QString>& hidden_rows() const { return hidden_rows_; }
  void hide_rows(const QString& name);
  void show_hidden();
  void set_host_folded(const QString& host, bool folded);
  // How long the others waited for a rank in its collectives; 0 until the run is analysed.
  std::int64_t waiting_caused_ns(std::size_t rank) const { return folds_[rank].waiting_caused_ns; }
  std::int64_t most_waiting_caused_ns() const;
  void set_waiting_caused(const std::vector<std::int64_t>& ns);

  bool panels_shown() const { return panels_shown_; }
  void set_panels_shown(bool shown);

 Q_SIGNALS:
  void view_changed();
  void selection_changed();
  void range_changed();
  void iteration_shown(std::int64_t number);  // by jump_to_iteration()
  void folds_changed();                       // the rows are to be placed again
  void filter_changed();
  void hits_changed();
  void filter_wanted();  // the keyboard goes to the field of the filter
  void panels_changed();
  void bookmarks_changed();
  void path_changed();
  void revealed(const paceline::viewer::SliceRef& slice);  // scroll to it
  void rank_wanted(std::size_t rank);                      // scroll to it

  // What an action asks of the widget that can do it.
  void search_wanted(const QString& text = {});  // for this name, or for what the user will type
  void timeline_wanted();                        // the keyboard goes back to the timeline
  void panel_wanted(const QString& title);
  void stacks_wanted(const paceline::viewer::StackPlace& place);
  void page_wanted(int pages);
  void step_wanted(paceline::viewer::ViewState::Step step);
  void row_hiding_wanted();           // of the row of the selection
  void row_pinning_wanted();          // of the row of the selection, or its unpinning
  void colour_wanted(bool of_phase);  // of the name of the selection, or of its phase
  void partner_wanted();              // the slice that the selected one started, or was started by

 private:
  struct Folds {
    bool collapsed = false, counters_unfolded = false, pinned = false, hidden = false;
    bool filtered_out = false;  // by the filter, while other ranks are not
    std::int64_t waiting_caused_ns = 0;
  };
  void arrange();                                   // fills groups_
  std::vector<std::size_t> ranks_in_order() const;  // the hidden ones last

  const Run& run_;
  TimeAxis axis_;
  std::vector<TimeRange> history_, future_;  // the views before and after this one, the nearest last
  std::optional<double> pointer_, marked_ns_;
  std::vector<SliceRef> selected_;
  std::optional<TimeRange> selected_range_;
  std::set<std::size_t> selected_ranks_;
  std::vector<Bookmark> bookmarks_;
  double visited_ns_ = std::numeric_limits<double>::quiet_NaN();  // the bookmark that was jumped to last
  bool path_shown_ = false, states_shown_ = true;
  std::vector<Folds> folds_;  // of each rank
  std::vector<RankGroup> groups_;
  std::set<QString> folded_hosts_, hidden_rows_;
  std::vector<RowName> pinned_rows_;
  std::vector<std::size_t> own_order_;
  RankOrder rank_order_ = RankOrder::number;
  QString filter_;
  KindSets shown_kinds_;
  HitList hits_;
  int names_width_ = default_names_width;
  bool panels_shown_ = true;
};

}  // namespace paceline::viewer
