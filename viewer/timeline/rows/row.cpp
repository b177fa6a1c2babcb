// SPDX-License-Identifier: Apache-2.0
#include "viewer/timeline/rows/row.h"

#include <QFontMetrics>
#include <cmath>

namespace paceline::viewer {

QImage& RowCanvas::blank(int width, int image_height) {
  const QSize size(width, image_height);
  if (image.size() != size) image = QImage(size, QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::transparent);
  return image;
}

void RowCanvas::arrow(int x, int y_middle, bool folded) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setPen(Qt::NoPen);
  painter.setBrush(QColor(theme.faint_text));
  const QPointF shut[] = {{x + 2.0, y_middle - 4.5}, {x + 2.0, y_middle + 4.5}, {x + 7.0, y_middle + 0.0}};
  const QPointF open[] = {{x + 0.0, y_middle - 2.5}, {x + 9.0, y_middle - 2.5}, {x + 4.5, y_middle + 3.0}};
  painter.drawPolygon(folded ? shut : open, 3);
  painter.restore();
}

QRect RowCanvas::name_box() const { return {header_left, y, names_width - header_left - header_margin, height}; }

std::optional<TimeRange> Row::range_at(double time_ns) const {
  const auto interval = interval_around(time_ns);
  if (!interval) return std::nullopt;
  const auto begin = static_cast<double>(interval->start_ns), end = static_cast<double>(interval->end_ns);
  return TimeRange{begin - (end - begin) / 4, end + (end - begin) / 4};
}

std::optional<double> Row::edge_near(const RowPoint& point, double slack_ns) {
  std::optional<double> nearest;
  for (const double time : {point.time_ns - slack_ns, point.time_ns, point.time_ns + slack_ns}) {
    const auto interval = interval_around(time);
    if (!interval) continue;
    for (const double edge : {double(interval->start_ns), double(interval->end_ns)}) {
      const double distance = std::abs(edge - point.time_ns);
      if (distance <= slack_ns && (!nearest || distance < std::abs(*nearest - point.time_ns))) nearest = edge;
    }
  }
  return nearest;
}

void paint_track_label(RowCanvas& canvas, const QString& label, bool main, const QRect& box) {
  canvas.painter.setFont(canvas.small);
  canvas.painter.setPen(QColor(main ? canvas.theme.header_text : canvas.theme.faint_text));
  const QString shown = QFontMetrics(canvas.small).elidedText(canvas.of_rank + label, Qt::ElideRight, box.width());
  canvas.painter.drawText(box, Qt::AlignVCenter | Qt::AlignLeft, shown);
}

}  // namespace paceline::viewer
