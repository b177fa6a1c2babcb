// SPDX-License-Identifier: Apache-2.0
#include "viewer/drawing/gpu_strip.h"

#include <algorithm>
#include <utility>

#include "viewer/drawing/labels.h"

namespace paceline::viewer {

IntervalSums::IntervalSums(analysis::Intervals intervals) : intervals_(std::move(intervals)) {
  double sum = 0;
  sums_.reserve(intervals_.size());
  for (const analysis::TimeInterval& interval : intervals_) {
    sums_.push_back(sum);
    sum += static_cast<double>(interval.end_ns - interval.start_ns);
  }
}

double IntervalSums::before(double time_ns) const {
  const auto after = std::ranges::partition_point(
      intervals_, [&](const analysis::TimeInterval& one) { return static_cast<double>(one.start_ns) < time_ns; });
  if (after == intervals_.begin()) return 0;
  const auto last = static_cast<std::size_t>(after - intervals_.begin()) - 1;
  const double begin = static_cast<double>(intervals_[last].start_ns),
               end = static_cast<double>(intervals_[last].end_ns);
  return sums_[last] + std::min(time_ns, end) - begin;
}

const analysis::TimeInterval* IntervalSums::first_in(double from_ns, double to_ns) const {
  const auto first = std::ranges::partition_point(
      intervals_, [&](const analysis::TimeInterval& one) { return static_cast<double>(one.end_ns) <= from_ns; });
  return first != intervals_.end() && static_cast<double>(first->start_ns) < to_ns ? &*first : nullptr;
}

GpuStrip::GpuStrip(const analysis::GpuActivity& activity)
    : all_(activity.all),
      compute_(activity.compute),
      communication_(activity.communication),
      hidden_(analysis::common(activity.communication, activity.compute)) {}

GpuStrip::Times GpuStrip::between(double from_ns, double to_ns) const {
  const auto in = [&](const IntervalSums& sums) { return sums.between(from_ns, to_ns); };
  const double hidden = in(hidden_);
  return {.compute = in(compute_),
          .exposed = in(communication_)-hidden,
          .hidden = hidden,
          .idle = to_ns - from_ns - in(all_)};
}

std::size_t GpuStrip::paint(QPainter& painter, const TimeAxis& axis, const QRect& box, const Theme& theme) const {
  const int lane = (box.height() - 1) / 2;
  const QRgb compute = phase_colour(analysis::Phase::forward, theme);
  const QRgb exposed = phase_colour(analysis::Phase::communication, theme),
             hidden = blend(exposed, theme.background, 40);
  painter.fillRect(box, QColor(theme.background));
  std::size_t count = 1;
  // Neighbours of one colour become one rectangle.
  const auto fill = [&](int y, auto&& colour_of) {
    QRgb colour = 0;
    int begin = 0;
    for (int x = 0; x <= axis.width(); ++x) {
      const QRgb next = x < axis.width() ? colour_of(x) : 0;
      if (next == colour && x < axis.width()) continue;
      if (colour != 0) painter.fillRect(box.left() + begin, y, x - begin, lane, QColor(colour)), ++count;
      colour = next, begin = x;
    }
  };
  const auto faded = [&](QRgb colour, double share) -> QRgb {
    if (share <= 0.001) return 0;
    return blend(colour, theme.background, 25 + static_cast<int>(75 * std::min(share, 1.0)));
  };
  const auto at = [&](int x) { return between(axis.time_at(x), axis.time_at(x + 1)); };
  const double column = std::max(axis.ns_per_pixel(), 1e-9);
  fill(box.top() + 1, [&](int x) { return faded(compute, at(x).compute / column); });
  fill(box.top() + 1 + lane, [&](int x) -> QRgb {
    const Times times = at(x);
    return faded(times.exposed >= times.hidden ? exposed : hidden, (times.exposed + times.hidden) / column);
  });
  return count;
}

}  // namespace paceline::viewer
