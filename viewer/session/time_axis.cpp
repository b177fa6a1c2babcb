// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/time_axis.h"

#include <algorithm>
#include <cmath>

namespace paceline::viewer {

TimeAxis::TimeAxis(double first_ns, double last_ns)
    : whole_{first_ns, std::max(last_ns, first_ns + shortest_view_ns)}, visible_(whole_) {}

void TimeAxis::set_width(int pixels) { width_ = std::max(1, pixels); }

void TimeAxis::set_whole(TimeRange whole) {
  whole_ = {whole.begin_ns, std::max(whole.end_ns, whole.begin_ns + shortest_view_ns)};
  show(visible_);
}

void TimeAxis::show(TimeRange range) {
  const double length = std::clamp(range.length(), shortest_view_ns, whole_.length());
  const double middle = (range.begin_ns + range.end_ns) / 2;
  // A range that is long enough and within the run is kept exactly, without rounding by the detour over its middle.
  double begin = length == range.length() ? range.begin_ns : middle - length / 2;
  begin = std::clamp(begin, whole_.begin_ns, whole_.end_ns - length);
  visible_ = {begin, begin + length};
}

void TimeAxis::zoom(double x, double factor) {
  const double time = time_at(x);
  const double length = std::clamp(visible_.length() * factor, shortest_view_ns, whole_.length());
  const double begin = time - x / width_ * length;
  show({begin, begin + length});
}

void TimeAxis::pan(double pixels) {
  const double begin = visible_.begin_ns + pixels * ns_per_pixel();
  show({begin, begin + visible_.length()});
}

void TimeAxis::center_on(double time_ns) {
  const double half = visible_.length() / 2;
  show({time_ns - half, time_ns + half});
}

double TimeAxis::tick_step(double pixels) const {
  const double wanted = std::max(pixels * ns_per_pixel(), 1.0);
  // Times of minutes and hours are round in those.
  if (wanted > 200e9) {
    for (const double minutes : {5, 10, 15, 30, 60, 120, 180, 360, 720, 1440}) {
      if (minutes * 60e9 >= wanted) return minutes * 60e9;
    }
  }
  const double decade = std::pow(10.0, std::floor(std::log10(wanted) + 1e-12));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (decade * step >= wanted * (1 - 1e-9)) return decade * step;
  }
  return decade * 10;
}

std::vector<Tick> TimeAxis::ticks(double step_ns) const {
  std::vector<Tick> ticks;
  // A number of steps from 2^53 on cannot be counted up: there, a double's neighbours are more than one step apart.
  for (double k = std::ceil(visible_.begin_ns / step_ns); k * step_ns <= visible_.end_ns && k + 1 > k; ++k) {
    ticks.push_back({x_of(k * step_ns), k * step_ns});
  }
  return ticks;
}

}  // namespace paceline::viewer
