// What all drawn widgets share: measures, fonts, labels, and a count of what was drawn.
#pragma once

#include <QFont>
#include <QPainter>
#include <QRect>
#include <QString>

#include "viewer/session/view_state.h"

namespace paceline::viewer {

constexpr int header_width = ViewState::default_names_width;  // the column of names until it is widened, in pixels
constexpr int ruler_height = 30;                              // above the rows

// How many calls of the painter a drawing took; tests compare it with the number of pixels.
struct DrawCounts {
  std::size_t rectangles = 0, labels = 0;
  DrawCounts& operator+=(const DrawCounts& more) {
    rectangles += more.rectangles;
    labels += more.labels;
    return *this;
  }
};

// A triangle with an exclamation mark, `size` pixels wide and high.
void paint_warning(QPainter& painter, const QPoint& top_left, int size, const QColor& colour);

QFont with_size(QFont font, int pixels, bool bold = false);

// `percent` of a over b, opaque.
QRgb blend(QRgb a, QRgb b, int percent);

// Draws text that is centred in height and begins at the left edge, elided to fit. Draws nothing where not even two
// letters fit. Returns whether something was drawn.
bool paint_label(QPainter& painter, const QRect& rect, const QString& text, QRgb background);

// A line of a tooltip's table. The value is escaped, the key is not.
QString tooltip_line(const QString& key, const QString& value);
// A bold title over such lines.
QString tooltip(const QString& title, const QString& lines);

}  // namespace paceline::viewer
