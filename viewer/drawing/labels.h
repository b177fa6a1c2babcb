// SPDX-License-Identifier: Apache-2.0
// What all drawn widgets share: measures, fonts, labels, and a count of what was drawn.
#pragma once

#include <QFont>
#include <QHash>
#include <QPainter>
#include <QRect>
#include <QSet>
#include <QStaticText>
#include <QString>
#include <QStringList>
#include <QWidget>
#include <functional>

#include "analysis/trace/trace.h"
#include "viewer/session/time_axis.h"

namespace paceline::viewer {

constexpr int header_width = default_names_width;  // the column of names until it is widened, in pixels
constexpr int ruler_height = 30;                   // above the rows

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

// Texts of one font, each laid out once and drawn many times: laying out takes most of the time of a label. While a
// view moves, most of its texts stay the same.
class LabelTexts {
 public:
  explicit LabelTexts(const QFont& font) : font_(font) {}

  const QFont& font() const { return font_; }
  int width(const QString& text) { return laid_out(text).width; }
  // `baseline` is its left end.
  void draw(QPainter& painter, const QPoint& baseline, const QString& text);

 private:
  struct Text {
    QStaticText text;
    int width = 0;
  };
  Text laid_out(const QString& text);

  QFont font_;
  QHash<QString, Text> texts_;
};

// Draws text that is centred in height and begins at the left edge, cut to fit: at its end, or in the middle. Draws
// nothing where the rest could not be understood. Returns whether something was drawn. `texts` have the painter's font;
// the text is laid out anew without them.
bool paint_label(QPainter& painter, const QRect& rect, const QString& text, QRgb background,
                 Qt::TextElideMode cut = Qt::ElideRight, LabelTexts* texts = nullptr);

// The beginnings that several names of a trace share, such as "MPI_" and "layer1.0.". A label without room for the
// whole name leaves them out.
class CommonPrefixes {
 public:
  // Cost: linear in the characters of the names of slices. Of very many names nothing is left out.
  explicit CommonPrefixes(const analysis::Trace& trace);

  // The name without its common beginnings, the longest rest first; "…conv1" for "layer1.0.conv1".
  QStringList shortened(const QString& name) const;

 private:
  QSet<QString> shared_;
};

// A line of a tooltip's table. The value is escaped, the key is not.
QString tooltip_line(const QString& key, const QString& value);
// A bold title over such lines.
QString tooltip(const QString& title, const QString& lines);
// Answers a ToolTip event with the text of what is at its place; none is shown where that is empty.
void show_tooltip(QEvent* event, QWidget& widget, const std::function<QString(const QPoint&)>& text_at);

}  // namespace paceline::viewer
