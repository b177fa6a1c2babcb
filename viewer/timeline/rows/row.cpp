// SPDX-License-Identifier: Apache-2.0
#include "viewer/timeline/rows/row.h"

#include <QFontMetrics>

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

void paint_track_label(RowCanvas& canvas, const QString& label, bool main, const QRect& box) {
  canvas.painter.setFont(canvas.small);
  canvas.painter.setPen(QColor(main ? canvas.theme.header_text : canvas.theme.faint_text));
  const QString shown = QFontMetrics(canvas.small).elidedText(canvas.of_rank + label, Qt::ElideRight, box.width());
  canvas.painter.drawText(box, Qt::AlignVCenter | Qt::AlignLeft, shown);
}

}  // namespace paceline::viewer
