// SPDX-License-Identifier: Apache-2.0
#include "viewer/timeline/timeline_painter.h"

#include <QFontMetrics>
#include <algorithm>
#include <cmath>

#include "viewer/text/time_text.h"

namespace paceline::viewer {

namespace timeline_painter {

void place(RowCanvas& canvas, const PlacedRow& placed, const Run& run) {
  canvas.y = placed.y;
  canvas.height = placed.end_y - placed.y;
  canvas.folded = placed.folded;
  canvas.order = placed.order;
  canvas.of_rank = placed.pinned ? QString("Rank %1, ").arg(run.trace.ranks[placed.row->rank()].rank) : "";
}

}  // namespace timeline_painter

std::vector<RulerTick> ruler_ticks(const TimeAxis& axis, const QFont& font, int names_width, int width) {
  const QFontMetrics metrics(font);
  const double span = axis.visible().end_ns;
  // The length of the labels depends on the step: it is widened until neighbours do not touch.
  double step = axis.tick_step(70);
  while (metrics.horizontalAdvance(time_text(span, step, span)) + 24 > step / axis.ns_per_pixel() &&
         step < axis.visible().length()) {
    step = axis.tick_step(step / axis.ns_per_pixel() * 1.5);
  }
  std::vector<RulerTick> ticks;
  for (const Tick& tick : axis.ticks(step)) {
    const int x = names_width + static_cast<int>(std::lround(tick.x));
    const QString text = time_text(tick.time_ns, step, span);
    const int length = metrics.horizontalAdvance(text), bottom = ruler_height - 11 + metrics.descent();
    ticks.push_back(
        {x, x + 5 + length <= width ? text : "", {x + 5, bottom - metrics.height(), length, metrics.height()}});
  }
  return ticks;
}

DrawCounts TimelinePainter::paint(QPainter& painter, const QSize& size, const ViewState& state, const RowLayout& rows,
                                  int scroll_y, std::optional<analysis::NameId> marked, const QRect& part) {
  const int pinned = rows.pinned_height(size.height() - ruler_height), edge = ruler_height + pinned;
  RowCanvas canvas{.painter = painter,
                   .axis = state.time.axis(),
                   .theme = theme_,
                   .colours = colours_,
                   .prefixes = prefixes_,
                   .labels = labels_,
                   .bold = with_size(font_, 12, true),
                   .small = labels_.font(),
                   .marked = marked,
                   .names_width = state.time.names_width(),
                   .level_height = rows.level_height()};
  const int names_width = state.time.names_width();
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setClipRect(part);
  painter.fillRect(QRect(QPoint(0, 0), size), QColor(theme_.background));
  paint_ruler(canvas, size);
  paint_rows(canvas, state, rows, QRect(0, ruler_height, size.width(), pinned), ruler_height, part);
  if (pinned > 0) painter.fillRect(0, edge - 1, size.width(), 1, QColor(theme_.faint_text));
  paint_rows(canvas, state, rows, QRect(0, edge, size.width(), size.height() - edge), ruler_height - scroll_y, part);
  painter.restore();
  painter.fillRect(QRect(names_width - 1, ruler_height, 1, size.height() - ruler_height) & part,
                   QColor(theme_.row_line));
  return canvas.counts;
}

void TimelinePainter::paint_rows(RowCanvas& canvas, const ViewState& state, const RowLayout& rows, const QRect& area,
                                 int shift, const QRect& part) {
  const QRect seen = part & area;
  if (seen.isEmpty()) return;
  QPainter& painter = canvas.painter;
  const int top = canvas.top = seen.top() - shift, bottom = canvas.bottom = seen.bottom() + 1 - shift;
  const int names_width = canvas.names_width;
  const QRect names = seen & QRect(0, area.top(), names_width, area.height());
  const QRect slices = seen & QRect(names_width, area.top(), area.width() - names_width, area.height());
  painter.save();
  painter.fillRect(names, QColor(theme_.header));
  painter.translate(0, shift);
  for (const PlacedRank& rank : rows.ranks_between(top, bottom)) {
    const bool folded = rows.rows_of(rank.rank).front().folded;
    if (!folded) painter.fillRect(0, rank.end_y - 1, area.width(), 1, QColor(theme_.row_line));
  }
  if (!names.isEmpty()) {
    painter.setClipRect(names.translated(0, -shift));
    paint_headers(canvas, state, rows, area.top() - shift);
  }
  if (!slices.isEmpty()) {
    painter.setClipRect(slices.translated(0, -shift));
    painter.translate(names_width, 0);
    const auto visible = rows.rows_between(top, bottom);
    for (const PlacedRow& placed : visible) placed.row->prepare();
    crew_.each(visible.size(), [&](std::size_t i) {
      RowCanvas at = canvas;
      timeline_painter::place(at, visible[i], state.run);
      visible[i].row->look_up(at);
    });
    for (const PlacedRow& placed : visible) {
      timeline_painter::place(canvas, placed, state.run);
      placed.row->paint(canvas);
    }
  }
  painter.restore();
}

void TimelinePainter::paint_headers(RowCanvas& canvas, const ViewState& state, const RowLayout& rows, int top) {
  for (const PlacedRow& placed : rows.rows_between(canvas.top, canvas.bottom)) {
    timeline_painter::place(canvas, placed, state.run);
    placed.row->paint_header(canvas, state.arrangement);
  }
  // The name of a rank whose first row is above the view stays in sight.
  const auto ranks = rows.ranks_between(top, top + 1);
  if (ranks.empty() || ranks.front().y >= top) return;
  const auto of_rank = rows.rows_of(ranks.front().rank);
  if (of_rank.size() < 2 || of_rank.front().y >= top) return;
  timeline_painter::place(canvas, of_rank.front(), state.run);
  canvas.y = std::min(top, ranks.front().end_y - canvas.height);
  canvas.painter.fillRect(0, canvas.y, canvas.names_width, canvas.height, QColor(theme_.header));
  of_rank.front().row->paint_header(canvas, state.arrangement);
  canvas.painter.fillRect(0, canvas.y + canvas.height - 1, canvas.names_width, 1, QColor(theme_.row_line));
}

void TimelinePainter::paint_ruler(RowCanvas& canvas, const QSize& size) {
  QPainter& painter = canvas.painter;
  const TimeAxis& axis = canvas.axis;
  painter.fillRect(0, 0, size.width(), ruler_height, QColor(theme_.ruler));
  painter.fillRect(0, ruler_height - 1, size.width(), 1, QColor(theme_.row_line));
  painter.setFont(canvas.small);
  painter.setPen(QColor(theme_.faint_text));
  for (const RulerTick& tick : ruler_ticks(axis, canvas.small, canvas.names_width, size.width())) {
    painter.fillRect(tick.x, ruler_height, 1, size.height() - ruler_height, QColor(theme_.grid));
    painter.fillRect(tick.x, ruler_height - 8, 1, 7, QColor(theme_.faint_text));
    painter.drawText(tick.box, Qt::AlignBottom | Qt::AlignLeft, tick.label);
    canvas.counts.rectangles += 2;
    ++canvas.counts.labels;
  }
  painter.fillRect(0, 0, canvas.names_width, ruler_height - 1, QColor(theme_.header));
  painter.fillRect(canvas.names_width - 1, 0, 1, ruler_height, QColor(theme_.row_line));
  // The lower half is left for the time at the pointer.
  painter.setPen(QColor(theme_.faint_text));
  painter.drawText(QRect(12, 0, canvas.names_width - 20, ruler_height / 2), Qt::AlignVCenter | Qt::AlignLeft,
                   length_text(axis.visible().length()) + " in view");
}

}  // namespace paceline::viewer
