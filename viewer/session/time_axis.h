// SPDX-License-Identifier: Apache-2.0
// The mapping between time and the columns of the screen, and the moves that change it.
//
//   TimeAxis axis(0, 60'000'000'000);     // a run of one minute
//   axis.set_width(1200);
//   axis.zoom(400, 0.5);                  // twice as close, the time under column 400 stays there
//
// Times are nanoseconds as double. At one hour their resolution is 0.5 ps, so panning by a pixel is exact at any zoom.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/index/level_of_detail.h"

namespace paceline::viewer {

// The column of names beside the axis, in pixels, until the user makes it wider.
constexpr int default_names_width = 232;

struct TimeRange {
  double begin_ns = 0, end_ns = 0;
  double length() const { return end_ns - begin_ns; }
  bool operator==(const TimeRange&) const = default;
};

struct Tick {
  double x = 0, time_ns = 0;
};

class TimeAxis {
 public:
  // The closest zoom shows this range over the whole width.
  static constexpr double shortest_view_ns = 200;

  TimeAxis(double first_ns, double last_ns);

  void set_width(int pixels);  // keeps the visible range
  int width() const { return width_; }
  TimeRange whole() const { return whole_; }
  // Other ends for the moves, such as those of a longer run that is shown beside this one.
  void set_whole(TimeRange whole);
  TimeRange visible() const { return visible_; }
  double ns_per_pixel() const { return visible_.length() / width_; }

  double x_of(double time_ns) const { return (time_ns - visible_.begin_ns) / ns_per_pixel(); }
  double time_at(double x) const { return visible_.begin_ns + x * ns_per_pixel(); }
  analysis::PixelColumns columns() const { return {visible_.begin_ns, ns_per_pixel(), width_}; }

  // All moves stay within the whole run. `factor` below 1 shows less time.
  void show(TimeRange range);
  void show_all() { show(whole_); }
  void zoom(double x, double factor);
  void pan(double pixels);  // a positive number shows later times
  void center_on(double time_ns);

  // The smallest step of the 1-2-5 series, or of whole minutes from five minutes on, at which neighbours are at least
  // `pixels` apart.
  double tick_step(double pixels) const;
  std::vector<Tick> ticks(double step_ns) const;

 private:
  TimeRange whole_, visible_;
  int width_ = 1;
};

}  // namespace paceline::viewer
