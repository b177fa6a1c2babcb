// SPDX-License-Identifier: Apache-2.0
#include "viewer/timeline/path_layer.h"

#include <QLineF>
#include <algorithm>
#include <optional>

namespace paceline::viewer {
namespace path_layer {

using analysis::PathPlace;
using analysis::PathSegment;

std::vector<PathSegment> segments_of(const Run& run) {
  const analysis::DependencyGraph graph = analysis::dependency_graph(*run.index);
  const auto path = analysis::critical_path(*run.index, graph);
  if (!path || path->stretches.empty()) return {};
  return analysis::path_segments(run.trace, graph, *path, path->stretches.back().from_ns,
                                 path->stretches.front().until_ns);
}

// Where the line is at this place: below the text of the slice's level, or in the strip of a rank whose rows are not
// shown.
std::optional<QPointF> point_of(const Geometry& geometry, const PathPlace& place) {
  const SliceRef ref{.rank = place.rank, .track = place.track, .slice = place.slice.value_or(0)};
  auto box = place.slice ? geometry.box_of(ref) : std::nullopt;
  if (!box) {
    const auto of_rank = geometry.rows.rows_of(place.rank);
    if (of_rank.empty()) return std::nullopt;
    const PlacedRow& strip = of_rank.front();
    box = QRect(0, geometry.y_of(strip.y), 1, strip.end_y - strip.y);
  }
  const double y = box->height() > 12 ? box->bottom() - 1 : box->center().y();
  return QPointF(geometry.x_of(double(place.time_ns)), y);
}

// Lines along the axes are rectangles, which cost much less than lines with a pen.
void paint_line(QPainter& painter, const QLineF& line, int width, QRgb colour) {
  const bool straight = line.dx() == 0 || line.dy() == 0;
  painter.setRenderHint(QPainter::Antialiasing, !straight);
  if (!straight) return painter.drawLine(line);
  const QRectF box = QRectF(line.p1(), line.p2()).normalized();
  const double half = (width - 1) / 2.0;
  painter.fillRect(box.adjusted(-half, -half, half + 1, half + 1).toRect(), QColor(colour));
}

// In the upper right corner.
void paint_note(QPainter& painter, const Geometry& geometry, const Theme& theme, const QString& text) {
  const int width = painter.fontMetrics().horizontalAdvance(text) + 16;
  const QRect rows = geometry.rows_box(), box(rows.right() - width - 8, rows.top() + 8, width, 22);
  painter.fillRect(box, QColor(theme.header));
  painter.setPen(QColor(theme.header_text));
  painter.drawText(box, Qt::AlignCenter, text);
}

}  // namespace path_layer

void PathLayer::want() {
  // A range that lost its end could take any time of the path.
  if (document_.insight() == nullptr || document_.insight()->figures.refused()) return;
  segments_.get(document_.run().slices, [&run = document_.run()] { return path_layer::segments_of(run); });
}

DrawCounts PathLayer::paint(QPainter& painter, const Geometry& geometry, const Theme& theme) const {
  const auto* all = segments();
  if (all == nullptr || all->empty()) {
    const bool refused = document_.insight() != nullptr && document_.insight()->figures.refused();
    path_layer::paint_note(
        painter, geometry, theme,
        all == nullptr && !refused ? "computing the critical path…" : "this run has no critical path");
    return {.rectangles = 1, .labels = 1};
  }
  using path_layer::PathSegment;
  const TimeRange view = geometry.state.time.axis().visible();
  const auto until = [](const PathSegment& one) { return double(one.to.time_ns); };
  std::vector<QLineF> lines;
  std::optional<QPointF> at;
  const auto draw_to = [&](const analysis::PathPlace& place) {
    const auto to = path_layer::point_of(geometry, place);
    if (to && at && *to != *at) lines.emplace_back(*at, *to);
    at = to;
  };
  auto segment = std::ranges::partition_point(*all, [&](const PathSegment& one) { return until(one) < view.begin_ns; });
  while (segment != all->end() && double(segment->from.time_ns) <= view.end_ns) {
    draw_to(segment->from);
    draw_to(segment->to);
    // The next one that ends in another column.
    const double column_end = std::max(until(*segment), view.begin_ns) + geometry.state.time.axis().ns_per_pixel();
    segment =
        std::partition_point(segment + 1, all->end(), [&](const PathSegment& one) { return until(one) < column_end; });
  }
  painter.save();
  painter.setClipRect(geometry.rows_box());
  for (const auto& [colour, width] : {std::pair(theme.background, 5), std::pair(theme.selection, 3)}) {
    painter.setPen(QPen(QColor(colour), width));
    for (const QLineF& line : lines) path_layer::paint_line(painter, line, width, colour);
  }
  painter.restore();
  return {.rectangles = 2 * lines.size(), .labels = 0};
}

}  // namespace paceline::viewer
