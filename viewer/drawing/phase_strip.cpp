#include "viewer/drawing/phase_strip.h"

#include <QFontMetrics>
#include <QImage>
#include <algorithm>
#include <cmath>

namespace paceline::viewer {
namespace {

using analysis::Phase;

DrawCounts paint_intervals(QPainter& painter, const RankIndex& rank, const TimeAxis& axis, const QRect& rect,
                           const Theme& theme, bool labels) {
  DrawCounts counts;
  const TimeRange visible = axis.visible();
  int drawn_to = 0;
  for (const analysis::PhaseInterval& interval : rank.phases->intervals(
           static_cast<std::int64_t>(visible.begin_ns), static_cast<std::int64_t>(std::ceil(visible.end_ns)))) {
    const double from = axis.x_of(static_cast<double>(interval.start_ns));
    const double to = axis.x_of(static_cast<double>(interval.end_ns));
    const int left = std::max(drawn_to, static_cast<int>(std::lround(std::max(from, 0.0))));
    const int right = static_cast<int>(std::lround(std::min(to, double(axis.width()))));
    if (right > left) {
      const QRgb colour = phase_colour(interval.phase, theme);
      const QRect box(rect.left() + left, rect.top(), right - left, rect.height());
      painter.fillRect(box, QColor(colour));
      ++counts.rectangles;
      if (labels && paint_label(painter, box, phase_text(interval.phase), colour)) {
        ++counts.labels;
      }
      drawn_to = right;
    }
  }
  return counts;
}

// Writes pixels: one rectangle for each share would take most of a frame's time.
DrawCounts paint_shares(QPainter& painter, const RankIndex& rank, const TimeAxis& axis, const QRect& rect,
                        const Theme& theme, int bin) {
  QImage strip(axis.width(), rect.height(), QImage::Format_ARGB32_Premultiplied);
  strip.fill(Qt::transparent);
  auto from = static_cast<std::int64_t>(axis.time_at(0));
  auto before = rank.phases->until(from);
  for (int x = 0; x < axis.width(); x += bin) {
    const int end = std::min(x + bin, axis.width());
    const auto to = static_cast<std::int64_t>(axis.time_at(end));
    const auto after = rank.phases->until(to);
    const double whole = static_cast<double>(std::max<std::int64_t>(to - from, 1));
    // The rank may begin or end within the column. Then its time fills only the lower part of the column.
    double sum = 0;
    int y = rect.height();
    for (const Phase phase : phase_order) {
      const auto p = static_cast<std::size_t>(phase);
      sum += static_cast<double>(after[p] - before[p]);
      const int top = rect.height() - static_cast<int>(std::lround(sum / whole * rect.height()));
      while (y > top) {
        QRgb* line = reinterpret_cast<QRgb*>(strip.scanLine(--y));
        std::fill(line + x, line + end, phase_colour(phase, theme));
      }
    }
    from = to;
    before = after;
  }
  painter.drawImage(rect.topLeft(), strip);
  return {.rectangles = 1, .labels = 0};
}

DrawCounts paint_present_phases(QPainter& painter, const RankIndex& rank, const TimeAxis& axis, const QRect& rect,
                                const Theme& theme, bool labels) {
  const TimeRange visible = axis.visible();
  const std::size_t intervals = rank.phases->count_between(static_cast<std::int64_t>(visible.begin_ns),
                                                           static_cast<std::int64_t>(visible.end_ns));
  const auto width = static_cast<std::size_t>(axis.width());
  // Intervals of two pixels or more on average are drawn themselves. Otherwise bins of about two dozen intervals are
  // drawn: narrower bins would show a moiré pattern of iterations against columns.
  if (2 * intervals <= width) return paint_intervals(painter, rank, axis, rect, theme, labels);
  const int bin = static_cast<int>(std::clamp<std::size_t>(24 * width / intervals, 1, 12));
  return paint_shares(painter, rank, axis, rect, theme, bin);
}

}  // namespace

DrawCounts paint_phases(QPainter& painter, const RankIndex& rank, const TimeAxis& axis, const QRect& rect,
                        const Theme& theme, bool labels) {
  DrawCounts counts = paint_present_phases(painter, rank, axis, rect, theme, labels);
  counts += paint_losses(painter, rank.losses, axis, rect, theme, labels);
  return counts;
}

QString loss_text(const analysis::LostInterval& loss) {
  if (loss.events == 0) return "events lost";
  return QString(loss.events == 1 ? "%L1 event lost" : "%L1 events lost").arg(loss.events);
}

void paint_hatching(QPainter& painter, const QRect& box, const Theme& theme) {
  painter.fillRect(box, QColor(theme.background));
  painter.fillRect(box, QBrush(QColor(theme.faint_text), Qt::BDiagPattern));
}

DrawCounts paint_losses(QPainter& painter, const std::vector<analysis::LostInterval>& losses, const TimeAxis& axis,
                        const QRect& rect, const Theme& theme, bool labels) {
  constexpr int least_width = 2;
  DrawCounts counts;
  const auto begin = static_cast<std::int64_t>(axis.visible().begin_ns);
  auto loss = std::partition_point(losses.begin(), losses.end(), [&](const auto& l) { return l.end_ns < begin; });
  int drawn_to = 0;
  for (; loss != losses.end(); ++loss) {
    const double from = axis.x_of(static_cast<double>(loss->start_ns));
    if (from >= axis.width()) break;
    const double to = std::min(axis.x_of(static_cast<double>(loss->end_ns)), double(axis.width()));
    const int left = std::max(drawn_to, static_cast<int>(std::floor(std::max(from, 0.0))));
    const int right = std::min(std::max(static_cast<int>(std::ceil(to)), left + least_width), axis.width());
    if (right <= left) continue;
    const QRect box(rect.left() + left, rect.top(), right - left, rect.height());
    paint_hatching(painter, box, theme);
    ++counts.rectangles;
    const QString text = loss_text(*loss);
    const int text_width = painter.fontMetrics().horizontalAdvance(text) + 10;
    if (labels && text_width + 4 <= box.width()) {
      const QRect behind(box.left() + 2, box.top() + 2, text_width, box.height() - 4);
      painter.fillRect(behind, QColor(theme.background));
      if (paint_label(painter, behind.adjusted(0, 0, 4, 0), text, theme.background)) ++counts.labels;
    }
    drawn_to = right;
  }
  return counts;
}

}  // namespace paceline::viewer
