#include "viewer/timeline/timeline_painter.h"

#include <QFontMetrics>
#include <algorithm>
#include <cmath>

#include "analysis/text/numbers.h"
#include "viewer/drawing/time_text.h"

namespace paceline::viewer {
namespace {

// `share` of a over b, opaque.
QRgb blend(QRgb a, QRgb b, int percent) {
  const auto mix = [&](int x, int y) { return (x * percent + y * (100 - percent)) / 100; };
  return qRgb(mix(qRed(a), qRed(b)), mix(qGreen(a), qGreen(b)), mix(qBlue(a), qBlue(b)));
}

QFont with_size(QFont font, int pixels, bool bold) {
  font.setPixelSize(pixels);
  font.setBold(bold);
  return font;
}

}  // namespace

QString slice_title(const Run& run, const analysis::Track& track, const analysis::Slices& slices, std::uint32_t slice) {
  const auto& trace = run.trace;
  QString title = QString::fromStdString(trace.name_of(slices, slice));
  if (title.isEmpty()) title = "(no name)";
  if (&slices != &track.slices || trace.names[trace.kind_of(slices, slice).category] != "iteration") {
    return title;
  }
  const auto number = track.slices.number(slice, trace.names.find("payload"));
  return number ? QString("%1 %2").arg(title).arg(*number, 0, 'f', 0) : title;
}

TimelinePainter::TimelinePainter(const Run& run, const Theme& theme, const QFont& font)
    : run_(run),
      theme_(theme),
      font_(with_size(font, 12, false)),
      bold_(with_size(font, 12, true)),
      small_(with_size(font, 11, false)),
      colours_(run.trace, theme),
      iteration_(run.trace.names.find("iteration")) {}

DrawCounts TimelinePainter::paint(QPainter& painter, const QSize& size, const TimeAxis& axis, const RowLayout& rows,
                                  int scroll_y, std::optional<analysis::NameId> marked) {
  DrawCounts counts;
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.fillRect(QRect(QPoint(0, 0), size), QColor(theme_.background));
  paint_ruler(painter, size, axis, counts);

  painter.save();
  painter.setClipRect(0, ruler_height, size.width(), size.height() - ruler_height);
  painter.translate(0, ruler_height - scroll_y);
  const int top = scroll_y, bottom = scroll_y + size.height() - ruler_height;
  painter.fillRect(0, top, header_width, bottom - top, QColor(theme_.header));
  for (const RankRows& rank : rows.ranks()) {
    if (rank.end_y <= top || rank.y >= bottom) continue;
    painter.fillRect(0, rank.end_y - 1, size.width(), 1, QColor(theme_.row_line));
    paint_header(painter, rank);
    painter.save();
    painter.setClipRect(header_width, top, size.width() - header_width, bottom - top);
    painter.translate(header_width, 0);
    painter.setFont(small_);
    const QRect strip(0, rank.strip_y(), axis.width(), rank.strip_height);
    counts += paint_phases(painter, run_.ranks[rank.rank], axis, strip, theme_, true);
    for (const TrackRows& track : rank.tracks) {
      if (track.end_y() <= top || track.y >= bottom) continue;
      counts +=
          track.counter ? paint_counter(painter, track, axis) : paint_track(painter, track, axis, top, bottom, marked);
    }
    painter.restore();
  }
  painter.fillRect(header_width - 1, top, 1, bottom - top, QColor(theme_.row_line));
  painter.restore();
  return counts;
}

void TimelinePainter::paint_ruler(QPainter& painter, const QSize& size, const TimeAxis& axis, DrawCounts& counts) {
  painter.fillRect(0, 0, size.width(), ruler_height, QColor(theme_.ruler));
  painter.fillRect(0, ruler_height - 1, size.width(), 1, QColor(theme_.row_line));
  painter.setFont(small_);
  const QFontMetrics metrics = painter.fontMetrics();
  const double span = axis.visible().end_ns;
  // The label's length depends on the step: widen until neighbours keep apart.
  double step = axis.tick_step(70);
  while (metrics.horizontalAdvance(time_text(span, step, span)) + 24 > step / axis.ns_per_pixel() &&
         step < axis.visible().length()) {
    step = axis.tick_step(step / axis.ns_per_pixel() * 1.5);
  }
  for (const Tick& tick : axis.ticks(step)) {
    const int x = header_width + static_cast<int>(std::lround(tick.x));
    painter.fillRect(x, ruler_height, 1, size.height() - ruler_height, QColor(theme_.grid));
    painter.fillRect(x, ruler_height - 8, 1, 7, QColor(theme_.faint_text));
    painter.setPen(QColor(theme_.faint_text));
    const QString text = time_text(tick.time_ns, step, span);
    if (x + 5 + metrics.horizontalAdvance(text) <= size.width()) painter.drawText(x + 5, ruler_height - 11, text);
    counts.rectangles += 2;
    ++counts.labels;
  }
  painter.fillRect(0, 0, header_width, ruler_height - 1, QColor(theme_.header));
  painter.fillRect(header_width - 1, 0, 1, ruler_height, QColor(theme_.row_line));
  painter.setPen(QColor(theme_.faint_text));
  painter.drawText(QRect(12, 0, header_width - 20, ruler_height - 1), Qt::AlignVCenter | Qt::AlignLeft,
                   duration_text(static_cast<std::int64_t>(axis.visible().length())) + " in view");
}

void TimelinePainter::paint_header(QPainter& painter, const RankRows& rank) {
  const auto& model = run_.trace.ranks[rank.rank];
  const int middle = rank.strip_y() + rank.strip_height / 2;
  const auto arrow = [&](int x, int y, bool is_shut) {
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setPen(Qt::NoPen);
    painter.setBrush(QColor(theme_.faint_text));
    const QPointF shut[] = {{x + 2.0, y - 4.5}, {x + 2.0, y + 4.5}, {x + 7.0, y + 0.0}};
    const QPointF open[] = {{x + 0.0, y - 2.5}, {x + 9.0, y - 2.5}, {x + 4.5, y + 3.0}};
    painter.drawPolygon(is_shut ? shut : open, 3);
    painter.restore();
  };
  arrow(9, middle, rank.collapsed);

  painter.setFont(bold_);
  painter.setPen(QColor(theme_.header_text));
  const QString name = QString("Rank %1").arg(model.rank);
  const int name_width = painter.fontMetrics().horizontalAdvance(name);
  const QRect line(26, rank.strip_y(), header_width - 36, rank.strip_height);
  painter.drawText(line, Qt::AlignVCenter | Qt::AlignLeft, name);
  painter.setFont(small_);
  painter.setPen(QColor(theme_.faint_text));
  const QRect rest = line.adjusted(name_width + 10, 0, 0, 0);
  painter.drawText(rest, Qt::AlignVCenter | Qt::AlignRight,
                   painter.fontMetrics().elidedText(QString::fromStdString(model.host), Qt::ElideRight, rest.width()));

  for (const TrackRows& rows : rank.tracks) {
    const auto& track = model.tracks[rows.track];
    QRect box(26, rows.depth_y(0), header_width - 36, rows.depth_height);
    if (rows.folds) arrow(9, rows.y + rows.depth_height / 2, !rank.counters_unfolded);
    if (rows.counter) {  // what the top of the row stands for
      const CounterGraph& graph = run_.ranks[rank.rank].graphs[rows.track];
      const QString top = QString::fromStdString(analysis::quantity(graph.top, graph.curve.unit));
      painter.setPen(QColor(theme_.faint_text));
      painter.drawText(box, Qt::AlignTop | Qt::AlignRight, top);
      box.setRight(box.right() - painter.fontMetrics().horizontalAdvance(top) - 6);
    }
    painter.setPen(QColor(track.main ? theme_.header_text : theme_.faint_text));
    painter.drawText(
        box, Qt::AlignVCenter | Qt::AlignLeft,
        painter.fontMetrics().elidedText(QString::fromStdString(track.label), Qt::ElideMiddle, box.width()));
  }
}

DrawCounts TimelinePainter::paint_track(QPainter& painter, const TrackRows& rows, const TimeAxis& axis, int top,
                                        int bottom, std::optional<analysis::NameId> marked) {
  DrawCounts counts;
  const auto& rank = run_.trace.ranks[rows.rank];
  const auto& track = rank.tracks[rows.track];
  const auto& level = run_.ranks[rows.rank].slices[rows.track];
  const auto columns = axis.columns();
  if (rows.mark_height > 0) paint_marks(painter, rows, axis, counts);
  if (narrow_.width() != columns.count) narrow_ = QImage(columns.count, 1, QImage::Format_ARGB32_Premultiplied);
  for (unsigned depth = 0; depth < level.depths(); ++depth) {
    const int y = rows.depth_y(depth);
    if (y + rows.depth_height <= top || y >= bottom) continue;
    level.items(track.slices, depth, columns, items_);
    // What fills most of its column gives a fold its colour; else what is in the middle, fainter where that is a gap.
    const auto colour_of = [&](const analysis::LevelOfDetail::Item& item) {
      const QRgb longest = colours_.of(rank, track, item.slice);
      if (item.count == 1 || 2 * double(track.slices.duration_ns[item.slice]) >= columns.ns_per_pixel) return longest;
      const double middle_ns = columns.begin_ns + (item.first + 0.5) * columns.ns_per_pixel;
      const bool busy = double(track.slices.end_ns(item.middle)) > middle_ns;
      return blend(colours_.of(rank, track, item.middle), theme_.background, busy ? 80 : 35);
    };
    bool has_narrow = false;
    for (const auto& item : items_) {
      const QRgb colour = colour_of(item);
      const int left = std::max(item.first, 0), right = std::min(item.end, columns.count);
      if (right <= left) continue;
      // What is too narrow for a label, and there may be one in every column, is collected and drawn in one go.
      if (item.end - item.first < 3) {
        if (!has_narrow) narrow_.fill(Qt::transparent);
        has_narrow = true;
        QRgb* line = reinterpret_cast<QRgb*>(narrow_.scanLine(0));
        std::fill(line + left, line + right, colour);
        continue;
      }
      const QRect box(left, y, right - left - 1, rows.depth_height - 1);
      painter.fillRect(box, QColor(colour));
      ++counts.rectangles;
      const auto name = run_.trace.kind_of(track.slices, item.slice).name;
      if (marked == name) {
        painter.fillRect(box.left(), box.bottom() - 1, box.width(), 2, QColor(theme_.selection));
        ++counts.rectangles;
      }
      if (box.width() >= 20 && paint_label(painter, box, label_of(track, item.slice, box.width()), colour)) {
        ++counts.labels;
      }
    }
    if (has_narrow) {
      painter.drawImage(QRect(0, y, columns.count, rows.depth_height - 1), narrow_);
      ++counts.rectangles;
    }
  }
  if (level.depths() > 0) {
    const QRect all(0, rows.depth_y(0), columns.count, rows.depth_y(level.depths()) - rows.depth_y(0) - 1);
    counts += paint_losses(painter, track.lost, axis, all, theme_, false);
  }
  return counts;
}

// An area below the least value of each column, fainter up to the greatest, whose pixel is the line.
DrawCounts TimelinePainter::paint_counter(QPainter& painter, const TrackRows& rows, const TimeAxis& axis) {
  const CounterGraph& graph = run_.ranks[rows.rank].graphs[rows.track];
  const auto columns = axis.columns();
  const QSize size(columns.count, rows.depth_height - 1);
  if (graph_.size() != size) graph_ = QImage(size, QImage::Format_ARGB32_Premultiplied);
  // Without a hue: the phases have those.
  const QRgb line = blend(theme_.text, theme_.background, 70);
  const QRgb sure = blend(theme_.text, theme_.background, 28), sometimes = blend(theme_.text, theme_.background, 14);
  graph_.fill(Qt::transparent);
  const int height = size.height();
  const auto y_of = [&](double value) {
    const double share = std::clamp(value / graph.top, 0.0, 1.0);
    return height - 1 - static_cast<int>(std::lround(share * (height - 1)));
  };
  for (int x = 0; x < columns.count; ++x) {
    const double begin = columns.begin_ns + x * columns.ns_per_pixel;
    const auto range = graph.between(begin, begin + columns.ns_per_pixel);
    if (!range) continue;
    const int greatest = y_of(range->high), least = y_of(range->low);
    for (int y = greatest; y < height; ++y) {
      reinterpret_cast<QRgb*>(graph_.scanLine(y))[x] = y == greatest ? line : y < least ? sometimes : sure;
    }
  }
  painter.drawImage(QPoint(0, rows.y), graph_);
  painter.fillRect(0, rows.y + height, columns.count, 1, QColor(theme_.grid));
  return {2, 0};
}

void TimelinePainter::paint_marks(QPainter& painter, const TrackRows& rows, const TimeAxis& axis, DrawCounts& counts) {
  const auto& track = run_.trace.ranks[rows.rank].tracks[rows.track];
  const auto& level = run_.ranks[rows.rank].marks[rows.track];
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setPen(Qt::NoPen);
  painter.setBrush(QColor(theme_.faint_text));
  for (unsigned depth = 0; depth < level.depths(); ++depth) {
    level.items(track.marks, depth, axis.columns(), items_);
    for (const auto& item : items_) {
      const double x = item.first + 0.5, y = rows.y + 2;
      const QPointF flag[] = {{x - 4, y}, {x + 4, y}, {x, y + 7}};
      painter.drawPolygon(flag, 3);
      ++counts.rectangles;
    }
  }
  painter.restore();
}

QString TimelinePainter::label_of(const analysis::Track& track, std::uint32_t slice, int width) {
  const QFontMetrics metrics(small_);
  const auto fits = [&](const QString& text) { return metrics.horizontalAdvance(text) + 12 <= width; };
  QString title = slice_title(run_, track, track.slices, slice);
  // With room to spare the duration too; without, an iteration's number says more than the beginning of its name.
  if (width >= 110) {
    const QString longer = title + "   " + duration_text(track.slices.duration_ns[slice]);
    if (fits(longer)) return longer;
  }
  const auto category = run_.trace.kind_of(track.slices, slice).category;
  if (iteration_ == 0 || category != iteration_ || fits(title)) return title;
  const QString number = title.mid(title.lastIndexOf(' ') + 1);
  return number.size() < title.size() && fits(number) ? number : QString();
}

}  // namespace paceline::viewer
