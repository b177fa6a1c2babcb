// SPDX-License-Identifier: Apache-2.0
#include "viewer/drawing/labels.h"

#include <QFontMetrics>
#include <QHelpEvent>
#include <QToolTip>

#include "viewer/drawing/palette.h"
#include "viewer/session/run.h"

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

LabelTexts::Text LabelTexts::laid_out(const QString& text) {
  constexpr qsizetype most = 5000;  // some megabytes
  const auto known = texts_.constFind(text);
  if (known != texts_.constEnd()) return *known;
  if (texts_.size() >= most) texts_.clear();
  Text made{.text = QStaticText(text), .width = QFontMetrics(font_).horizontalAdvance(text)};
  made.text.setTextFormat(Qt::PlainText);
  return *texts_.insert(text, made);
}

void LabelTexts::draw(QPainter& painter, const QPoint& baseline, const QString& text) {
  painter.drawStaticText(QPointF(baseline) - QPointF(0, QFontMetricsF(font_).ascent()), laid_out(text).text);
}

bool paint_label(QPainter& painter, const QRect& rect, const QString& text, QRgb background, Qt::TextElideMode cut,
                 LabelTexts* texts) {
  constexpr int margin = 4;
  const int room = rect.width() - 2 * margin;
  const QFontMetrics metrics = painter.fontMetrics();
  if (room < 2 * metrics.averageCharWidth() || text.isEmpty()) return false;
  QString shown = text;
  if ((texts != nullptr ? texts->width(text) : metrics.horizontalAdvance(text)) > room) {
    shown = metrics.elidedText(text, cut, room);
    // Two letters and the ellipsis cannot be understood, nor can two at each end.
    if (shown.size() < (cut == Qt::ElideMiddle ? 6 : 4)) return false;
  }
  painter.setPen(QColor(text_colour_on(background)));
  const int baseline = rect.top() + (rect.height() + metrics.ascent() - metrics.descent()) / 2;
  const QPoint at(rect.left() + margin, baseline);
  if (texts != nullptr) {
    texts->draw(painter, at, shown);
  } else {
    painter.drawText(at, shown);
  }
  return true;
}

namespace prefixes {

constexpr std::size_t most_names = 20'000;
constexpr int least_sharing = 3, least_rest = 3;

// Calls visit(length) for each beginning that ends with a separator, the shortest first.
template <class Visit>
void each(const QString& name, Visit visit) {
  for (qsizetype i = 1; i + least_rest <= name.size(); ++i) {
    const bool separator = name[i - 1] == '.' || name[i - 1] == '_' || name[i - 1] == '/' || name[i - 1] == ':';
    if (separator && name[i] != ':') visit(i);
  }
}

}  // namespace prefixes

CommonPrefixes::CommonPrefixes(const analysis::Trace& trace) {
  if (trace.kinds.size() > prefixes::most_names) return;
  QSet<analysis::NameId> names;
  QHash<QString, int> counts;
  for (const analysis::Kind& kind : trace.kinds) {
    if (names.contains(kind.name)) continue;
    names.insert(kind.name);
    const QString name = shown_name(trace.names[kind.name]);
    prefixes::each(name, [&](qsizetype length) {
      if (++counts[name.left(length)] == prefixes::least_sharing) shared_.insert(name.left(length));
    });
  }
}

QStringList CommonPrefixes::shortened(const QString& name) const {
  QStringList rests;
  prefixes::each(name, [&](qsizetype length) {
    if (shared_.contains(name.left(length))) rests << QChar(0x2026) + name.mid(length);
  });
  return rests;
}

QString tooltip_line(const QString& key, const QString& value) {
  return QString("<tr><td style='padding-right:8px'>%1</td><td>%2</td></tr>").arg(key, value.toHtmlEscaped());
}

QString tooltip(const QString& title, const QString& lines) {
  return QString("<b>%1</b><table>%2</table>").arg(title.toHtmlEscaped(), lines);
}

void show_tooltip(QEvent* event, QWidget& widget, const std::function<QString(const QPoint&)>& text_at) {
  const auto* help = static_cast<QHelpEvent*>(event);
  QToolTip::showText(help->globalPos(), text_at(help->pos()), &widget);  // an empty text hides it
}

}  // namespace paceline::viewer
