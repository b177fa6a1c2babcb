#include "viewer/drawing/labels.h"

#include <QFontMetrics>

#include "viewer/drawing/palette.h"

namespace paceline::viewer {

QFont with_size(QFont font, int pixels, bool bold) {
  font.setPixelSize(pixels);
  font.setBold(bold);
  return font;
}

QRgb blend(QRgb a, QRgb b, int percent) {
  const auto mix = [&](int x, int y) { return (x * percent + y * (100 - percent)) / 100; };
  return qRgb(mix(qRed(a), qRed(b)), mix(qGreen(a), qGreen(b)), mix(qBlue(a), qBlue(b)));
}

void paint_warning(QPainter& painter, const QPoint& top_left, int size, const QColor& colour) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setPen(Qt::NoPen);
  painter.setBrush(colour);
  const double x = top_left.x(), y = top_left.y(), s = size;
  const QPointF triangle[] = {{x + s / 2, y}, {x + s, y + s}, {x, y + s}};
  painter.drawPolygon(triangle, 3);
  painter.setBrush(QColor(text_colour_on(colour.rgb())));
  painter.drawRect(QRectF(x + s / 2 - s / 14, y + s * 0.35, s / 7, s * 0.33));
  painter.drawRect(QRectF(x + s / 2 - s / 14, y + s * 0.76, s / 7, s * 0.14));
  painter.restore();
}

bool paint_label(QPainter& painter, const QRect& rect, const QString& text, QRgb background) {
  constexpr int margin = 4;
  const int room = rect.width() - 2 * margin;
  const QFontMetrics metrics = painter.fontMetrics();
  if (room < 2 * metrics.averageCharWidth() || text.isEmpty()) return false;
  QString shown = text;
  if (metrics.horizontalAdvance(text) > room) {
    shown = metrics.elidedText(text, Qt::ElideRight, room);
    if (shown.size() < 4) return false;  // two letters and the ellipsis cannot be understood
  }
  painter.setPen(QColor(text_colour_on(background)));
  const int baseline = rect.top() + (rect.height() + metrics.ascent() - metrics.descent()) / 2;
  painter.drawText(rect.left() + margin, baseline, shown);
  return true;
}

QString tooltip_line(const QString& key, const QString& value) {
  return QString("<tr><td style='padding-right:8px'>%1</td><td>%2</td></tr>").arg(key, value.toHtmlEscaped());
}

QString tooltip(const QString& title, const QString& lines) {
  return QString("<b>%1</b><table>%2</table>").arg(title.toHtmlEscaped(), lines);
}

}  // namespace paceline::viewer
