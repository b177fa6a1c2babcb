// SPDX-License-Identifier: Apache-2.0
#include "viewer/timeline/geometry.h"

#include <algorithm>
#include <cmath>

namespace paceline::viewer {

int Geometry::x_of(double time_ns) const {
  constexpr double beside = 4;
  const double x = state.time.axis().x_of(time_ns), width = state.time.axis().width();
  return state.time.names_width() + static_cast<int>(std::lround(std::clamp(x, -beside, width + beside)));
}

QRect Geometry::rows_box() const {
  return {state.time.names_width(), ruler_height, size.width() - state.time.names_width(),
          size.height() - ruler_height};
}

const PlacedRow* Geometry::row_at(const QPoint& position) const {
  return position.y() < ruler_height ? nullptr : rows.at(row_y(position.y()));
}

RowPoint Geometry::point_in(const PlacedRow& placed, const QPoint& position) const {
  const TimeAxis& axis = state.time.axis();
  return {.y = position.y() - y_of(placed.y),
          .level_height = rows.level_height(),
          .time_ns = time_at(position.x()),
          .ns_per_pixel = axis.ns_per_pixel(),
          .end_ns = axis.visible().end_ns};
}

QRect Geometry::box_between(double from_ns, double end_ns, int y, int height) const {
  const int left = x_of(from_ns), right = std::max(left + 1, x_of(end_ns));
  const QRect box(left, y_of(y), right - left, height);
  const int pinned = pinned_height(), edge = ruler_height + pinned;
  if (y < pinned || box.top() >= edge || pinned == 0) return box;
  return {left, edge, box.width(), std::max(0, box.bottom() + 1 - edge)};
}

std::optional<QRect> Geometry::box_of(const SliceRef& ref) const {
  const PlacedRow* placed = rows.row_of(ref);
  if (placed == nullptr) return std::nullopt;
  const auto [top, bottom] = *placed->row->place_of(ref, rows.level_height());
  const auto& slices = slices_of(run, ref);
  return box_between(double(slices.start_ns[ref.slice]), double(slices.end_ns(ref.slice)), placed->y + top,
                     bottom - top - 1);
}

std::optional<QRect> Geometry::box_on_rank(const SliceRef& ref, std::int64_t from_ns, std::int64_t end_ns) const {
  if (const auto box = box_of(ref)) return box;
  const auto of_rank = rows.rows_of(ref.rank);
  if (of_rank.empty()) return std::nullopt;
  const PlacedRow& strip = of_rank.front();
  return box_between(double(from_ns), double(end_ns), strip.y, strip.end_y - strip.y);
}

}  // namespace paceline::viewer
