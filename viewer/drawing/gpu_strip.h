// SPDX-License-Identifier: Apache-2.0
// What the GPUs of a rank did, as two lanes below the strip of its phases: computing, and under it communication, which
// is strong where no computation hides it and pale where one does. A lane is fainter where it is used in part of a
// column only.
#pragma once

#include <QPainter>
#include <vector>

#include "analysis/device/gpu.h"
#include "viewer/drawing/palette.h"
#include "viewer/session/time_axis.h"

namespace paceline::viewer {

// How much of a range of time disjoint intervals cover.
class IntervalSums {
 public:
  explicit IntervalSums(analysis::Intervals intervals = {});
  double between(double from_ns, double to_ns) const { return before(to_ns) - before(from_ns); }  // O(log n)
  // The first interval that is in the range in part; nullptr if there is none.
  const analysis::TimeInterval* first_in(double from_ns, double to_ns) const;
  bool empty() const { return intervals_.empty(); }

 private:
  double before(double time_ns) const;

  analysis::Intervals intervals_;
  std::vector<double> sums_;  // of those before each
};

class GpuStrip {
 public:
  explicit GpuStrip(const analysis::GpuActivity& activity);

  bool empty() const { return all_.empty(); }
  // In a range of time, in ns.
  struct Times {
    double compute = 0, exposed = 0, hidden = 0, idle = 0;
  };
  Times between(double from_ns, double to_ns) const;  // O(log n)

  // Cost: columns × log n. Returns the number of rectangles.
  std::size_t paint(QPainter& painter, const TimeAxis& axis, const QRect& box, const Theme& theme) const;
  // The height of both lanes in a strip of this height; 0 where it is too low for them.
  static int height_in(int strip_height) { return strip_height < 12 ? 0 : strip_height < 20 ? 5 : 9; }

 private:
  IntervalSums all_, compute_, communication_, hidden_;
};

}  // namespace paceline::viewer
