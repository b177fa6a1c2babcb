// SPDX-License-Identifier: Apache-2.0
// A row of the timeline. Each kind of row is a class of its own, made by one line of rows.cpp.
//
// A row knows what it shows and how it is drawn. It does not know where it is: the layout places it, and all its
// coordinates are relative to its top.
#pragma once

#include <QImage>
#include <QPainter>
#include <QString>
#include <optional>
#include <vector>

#include "analysis/index/level_of_detail.h"
#include "analysis/trace/intervals.h"
#include "viewer/drawing/labels.h"
#include "viewer/drawing/palette.h"
#include "viewer/session/arrangement.h"
#include "viewer/session/commands.h"
#include "viewer/session/document.h"

namespace paceline::viewer {

// What rows are drawn with. The painter's origin is the row's left edge, at the top of all rows.
struct RowCanvas {
  QPainter& painter;
  const TimeAxis& axis;
  const Theme& theme;
  SliceColours& colours;
  const CommonPrefixes& prefixes;
  LabelTexts& labels;  // in the small font
  QFont bold, small;
  std::optional<analysis::NameId> marked;  // slices of this name are underlined
  int names_width = 0;                     // of the column of names
  int level_height = 0;                    // of a level of nesting
  int top = 0, bottom = 0;                 // what is visible
  int y = 0, height = 0;                   // of the row
  bool folded = false;                     // whether the row stands for its rank, with no margin around it
  std::size_t order = 0;                   // of its rank among the ranks on screen
  QString of_rank = {};                    // before the label of a pinned row: "Rank 3, "
  DrawCounts counts = {};
  // Reused from row to row.
  std::vector<analysis::LevelOfDetail::Item> items = {};
  QImage image = {};

  // An empty image of this size, transparent.
  QImage& blank(int width, int image_height);
  // Draws the triangle beside a header's text, which shows whether its rows are folded.
  void arrow(int x, int y_middle, bool folded);
  // Where a header's text is.
  QRect name_box() const;
};

// A point in a row.
struct RowPoint {
  int y = 0, level_height = 0;
  double time_ns = 0, ns_per_pixel = 1;
  double end_ns = 0;  // of the view: decides the unit in which times are written
};

class Row {
 public:
  enum class Hidden { never, with_rank, with_counters };  // when its rank is collapsed, when its counters are folded
  struct Height {
    int levels = 1, pixels = 0;  // levels × the height of a level + pixels
  };

  Row(Document& document, std::size_t rank, Hidden hidden) : document_(document), rank_(rank), hidden_(hidden) {}
  virtual ~Row() = default;

  std::size_t rank() const { return rank_; }
  Hidden hidden() const { return hidden_; }
  // May change with Document::row_ready() and with the filter.
  virtual Height height() const = 0;
  // Slices of other kinds are not shown from now on; nullptr: all are.
  virtual void set_filter(const KindSet&) {}
  // Whether the filter leaves anything to be shown.
  virtual bool shown() const { return true; }

  // By which the user hides rows like this one on all ranks; empty for rows that stand for a rank or a host.
  virtual QString name() const { return {}; }
  // Whether this is the strip of phases that stands for a rank.
  virtual bool is_strip() const { return false; }
  // Whether this is a strip of the states of threads, which the view can leave out.
  virtual bool is_states() const { return false; }

  // Before look_up(): begins what only the UI thread may begin.
  virtual void prepare() {}
  // In any thread: finds what the next paint(), with the same canvas, will draw. Most of a frame's time is spent
  // waiting for memory, so rows do this at the same time. Draws nothing and writes only to the row.
  virtual void look_up(const RowCanvas&) {}
  virtual void paint(RowCanvas& canvas) = 0;
  // Whether the last painting showed everything; otherwise Document::row_ready() follows.
  virtual bool complete() const { return true; }
  // In the column of names, whose painter's origin is the left edge of the window.
  virtual void paint_header(RowCanvas& canvas, const Arrangement& arrangement) = 0;
  // A click on the header.
  virtual void header_clicked(Arrangement&) const {}
  // HTML for what is at this point; empty if there is nothing.
  virtual QString tooltip(const RowPoint&) { return {}; }
  // The same for the header.
  virtual QString header_tooltip(const Arrangement&) const { return {}; }
  // What is not a slice and lasts at this time: a phase, a state.
  virtual std::optional<analysis::TimeInterval> interval_around(double /*time_ns*/) const { return std::nullopt; }
  // The range of time that a double click on it shows.
  std::optional<TimeRange> range_at(double time_ns) const;
  // The nearest begin or end of something on the level at this point, at most `slack_ns` away.
  virtual std::optional<double> edge_near(const RowPoint& point, double slack_ns);

  // Of rows that show slices. They find nothing while the row's index is being computed.
  // The slice at this point; narrow slices and marks are found within 3 pixels.
  virtual std::optional<SliceRef> slice_at(const RowPoint&) { return std::nullopt; }
  // A slice within `slack_ns` of this time, on this level or the nearest one further out that has one.
  virtual std::optional<SliceRef> slice_near(double /*time_ns*/, double /*slack_ns*/, unsigned /*level*/ = 0) {
    return std::nullopt;
  }
  // Those in view, level by level in the order of time; of slices narrower than a pixel the longest of each column.
  virtual std::vector<SliceRef> slices_in(const TimeAxis&) { return {}; }
  virtual std::optional<SliceRef> neighbour(const SliceRef&, Commands::Step) { return std::nullopt; }
  // Top and bottom of a slice; nothing if this row does not show it.
  virtual std::optional<std::pair<int, int>> place_of(const SliceRef&, int /*level_height*/) { return std::nullopt; }

 protected:
  const Run& run() const { return document_.run(); }
  const analysis::Rank& model() const { return run().trace.ranks[rank_]; }
  const RankIndex& index() const { return run().ranks[rank_]; }
  // nullptr until the run is analysed.
  const WaitTimeline* waits() const { return document_.insight() ? &document_.insight()->waits[rank_] : nullptr; }

  Document& document_;

 private:
  std::size_t rank_;
  Hidden hidden_;
};

constexpr int header_left = 26, header_margin = 10;  // where a header's text begins and ends

// Draws a track's label in its header, in `box`. That of the main thread stands out.
void paint_track_label(RowCanvas& canvas, const QString& label, bool main, const QRect& box);

}  // namespace paceline::viewer
