#include "viewer/timeline/timeline_painter.h"

#include <QFontMetrics>
#include <algorithm>
#include <cmath>

#include "analysis/text/numbers.h"
#include "viewer/drawing/time_text.h"

namespace paceline::viewer {

DrawCounts TimelinePainter::paint(QPainter& painter, const QSize& size, const ViewState& state, const RowLayout& rows,
                                  int scroll_y, std::optional<analysis::NameId> marked) {
  const int top = scroll_y, bottom = scroll_y + size.height() - ruler_height;
  RowCanvas canvas{.painter = painter,
                   .axis = state.axis(),
                   .theme = theme_,
                   .colours = colours_,
                   .prefixes = prefixes_,
                   .labels = labels_,
                   .bold = with_size(font_, 12, true),
                   .small = labels_.font(),
                   .marked = marked,
                   .names_width = state.names_width(),
                   .level_height = rows.level_height(),
                   .top = top,
                   .bottom = bottom,
                   .counts = {},
                   .items = {},
                   .image = {}};
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.fillRect(QRect(QPoint(0, 0), size), QColor(theme_.background));
  paint_ruler(canvas, size);

  painter.save();
  painter.setClipRect(0, ruler_height, size.width(), size.height() - ruler_height);
  painter.translate(0, ruler_height - scroll_y);
  const int names_width = state.names_width();
  painter.fillRect(0, top, names_width, bottom - top, QColor(theme_.header));
  const auto ranks = rows.ranks_between(top, bottom);
  for (const PlacedRank& rank : ranks) {
    const bool folded = rows.rows_of(rank.rank).front().folded;
    if (!folded) painter.fillRect(0, rank.end_y - 1, size.width(), 1, QColor(theme_.row_line));
  }
  const auto visible = rows.rows_between(top, bottom);
  const auto place = [&](const PlacedRow& placed) {
    canvas.y = placed.y;
    canvas.height = placed.end_y - placed.y;
    canvas.folded = placed.folded;
    canvas.order = placed.order;
    canvas.of_rank = placed.pinned ? QString("Rank %1, ").arg(state.run().trace.ranks[placed.row->rank()].rank) : "";
  };
  painter.setClipRect(0, top, names_width, bottom - top);
  for (const PlacedRow& placed : visible) {
    place(placed);
    placed.row->paint_header(canvas, state);
  }
  // The name of a rank whose first row is above the view stays in sight.
  if (!ranks.empty() && ranks.front().y < top) {
    const auto of_rank = rows.rows_of(ranks.front().rank);
    if (of_rank.size() > 1 && of_rank.front().y < top) {
      place(of_rank.front());
      canvas.y = std::min(top, ranks.front().end_y - canvas.height);
      painter.fillRect(0, canvas.y, names_width, canvas.height, QColor(theme_.header));
      of_rank.front().row->paint_header(canvas, state);
      painter.fillRect(0, canvas.y + canvas.height - 1, names_width, 1, QColor(theme_.row_line));
    }
  }
  painter.setClipRect(names_width, top, size.width() - names_width, bottom - top);
  painter.translate(names_width, 0);
  for (const PlacedRow& placed : visible) {
    place(placed);
    placed.row->paint(canvas);
  }
  painter.restore();
  painter.fillRect(names_width - 1, ruler_height, 1, size.height() - ruler_height, QColor(theme_.row_line));
  return canvas.counts;
}

void TimelinePainter::paint_ruler(RowCanvas& canvas, const QSize& size) {
  QPainter& painter = canvas.painter;
  const TimeAxis& axis = canvas.axis;
  painter.fillRect(0, 0, size.width(), ruler_height, QColor(theme_.ruler));
  painter.fillRect(0, ruler_height - 1, size.width(), 1, QColor(theme_.row_line));
  painter.setFont(canvas.small);
  const QFontMetrics metrics(canvas.small);
  const double span = axis.visible().end_ns;
  // The length of the labels depends on the step: it is widened until neighbours do not touch.
  double step = axis.tick_step(70);
  while (metrics.horizontalAdvance(time_text(span, step, span)) + 24 > step / axis.ns_per_pixel() &&
         step < axis.visible().length()) {
    step = axis.tick_step(step / axis.ns_per_pixel() * 1.5);
  }
  for (const Tick& tick : axis.ticks(step)) {
    const int x = canvas.names_width + static_cast<int>(std::lround(tick.x));
    painter.fillRect(x, ruler_height, 1, size.height() - ruler_height, QColor(theme_.grid));
    painter.fillRect(x, ruler_height - 8, 1, 7, QColor(theme_.faint_text));
    painter.setPen(QColor(theme_.faint_text));
    const QString text = time_text(tick.time_ns, step, span);
    if (x + 5 + metrics.horizontalAdvance(text) <= size.width()) painter.drawText(x + 5, ruler_height - 11, text);
    canvas.counts.rectangles += 2;
    ++canvas.counts.labels;
  }
  painter.fillRect(0, 0, canvas.names_width, ruler_height - 1, QColor(theme_.header));
  painter.fillRect(canvas.names_width - 1, 0, 1, ruler_height, QColor(theme_.row_line));
  // The lower half is left for the time at the pointer.
  painter.setPen(QColor(theme_.faint_text));
  painter.drawText(QRect(12, 0, canvas.names_width - 20, ruler_height / 2), Qt::AlignVCenter | Qt::AlignLeft,
                   duration_text(static_cast<std::int64_t>(axis.visible().length())) + " in view");
}

}  // namespace paceline::viewer
