// SPDX-License-Identifier: Apache-2.0
#include "viewer/drawing/phase_strip.h"

#include <QFontMetrics>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace phase_strip {

using analysis::Phase;

QRgb waiting_colour(const Theme& theme) {
  return blend(phase_colour(Phase::communication, theme), theme.background, 30);
}
QRgb waiting_lines(const Theme& theme) {
  return blend(phase_colour(Phase::communication, theme), theme.background, 65);
}

// The part of a range of time that is on screen, in columns; nothing where it is narrower than half a column.
std::optional<std::pair<int, int>> columns_of(const TimeAxis& axis, std::int64_t start_ns, std::int64_t end_ns) {
  const int left = static_cast<int>(std::lround(std::max(axis.x_of(static_cast<double>(start_ns)), 0.0)));
  const int right =
      static_cast<int>(std::lround(std::min(axis.x_of(static_cast<double>(end_ns)), double(axis.width()))));
  return right > left ? std::optional(std::pair(left, right)) : std::nullopt;
}

// Rectangles of one strip, gathered so that each colour is set once: a strip may have one in every other column.
struct Rectangles {
  std::array<std::vector<QRect>, phase_order.size()> of_phase;
  std::vector<QRect> waiting;

  std::size_t paint(QPainter& painter, const Theme& theme) const {
    std::size_t count = waiting.size();
    const auto fill = [&](const std::vector<QRect>& rects, const QBrush& brush) {
      if (rects.empty()) return;
      painter.setBrush(brush);
      painter.drawRects(rects.data(), static_cast<int>(rects.size()));
    };
    painter.save();
    painter.setPen(Qt::NoPen);
    for (const Phase phase : phase_order) {
      const auto& rects = of_phase[static_cast<std::size_t>(phase)];
      fill(rects, QColor(phase_colour(phase, theme)));
      count += rects.size();
    }
    fill(waiting, QColor(waiting_colour(theme)));
    fill(waiting, QBrush(QColor(waiting_lines(theme)), Qt::BDiagPattern));
    painter.restore();
    return count;
  }
};

struct Label {
  QRect box;
  Phase phase;
};

DrawCounts paint_intervals(QPainter& painter, const RankIndex& rank, const WaitTimeline* waits, const TimeAxis& axis,
                           const QRect& rect, const Theme& theme, LabelTexts* labels) {
  Rectangles rectangles;
  std::vector<Label> names;
  const TimeRange visible = axis.visible();
  int drawn_to = 0;
  for (const analysis::PhaseInterval& interval : rank.phases->intervals(
           static_cast<std::int64_t>(visible.begin_ns), static_cast<std::int64_t>(std::ceil(visible.end_ns)))) {
    const auto columns = columns_of(axis, interval.start_ns, interval.end_ns);
    if (!columns || columns->second <= drawn_to) continue;
    const int left = std::max(drawn_to, columns->first);
    const QRect box(rect.left() + left, rect.top(), columns->second - left, rect.height());
    rectangles.of_phase[static_cast<std::size_t>(interval.phase)].push_back(box);
    drawn_to = columns->second;
    QRect for_label = box;
    if (waits != nullptr && interval.phase == Phase::communication) {
      for (const Wait& wait : waits->between(double(interval.start_ns), double(interval.end_ns))) {
        const auto part =
            columns_of(axis, std::max(wait.from_ns, interval.start_ns), std::min(wait.until_ns, interval.end_ns));
        if (!part || part->second - part->first < 2) continue;
        rectangles.waiting.emplace_back(rect.left() + part->first, rect.top(), part->second - part->first,
                                        rect.height());
        // The label goes into the solid part, if that is where there is room.
        if (rect.left() + part->first <= for_label.left()) for_label.setLeft(rect.left() + part->second);
      }
    }
    if (labels != nullptr) names.push_back({for_label, interval.phase});
  }
  DrawCounts counts{.rectangles = rectangles.paint(painter, theme), .labels = 0};
  for (const auto& [box, phase] : names) {
    const QRgb colour = phase_colour(phase, theme);
    if (paint_label(painter, box, phase_text(phase), colour, Qt::ElideRight, labels)) ++counts.labels;
  }
  return counts;
}

struct Bin {
  analysis::PhaseTimeline::Totals phases{};
  std::int64_t waited_ns = 0;
};

// What the phases have been in a strip's ranks from bin to bin.
class Shares {
 public:
  Shares(std::span<const RankIndex* const> ranks, std::span<const WaitTimeline* const> waits, std::int64_t from_ns) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      ranks_.push_back({analysis::PhaseTimeline::Cursor(*ranks[r]->phases), {}, waits[r], 0, 0});
    }
    next(from_ns);
  }

  // From the end of the last bin, or from from_ns, to this time.
  Bin next(std::int64_t to_ns) {
    Bin bin;
    for (OfRank& rank : ranks_) {
      const auto until = rank.phases.until(to_ns);
      for (std::size_t phase = 0; phase < until.size(); ++phase) bin.phases[phase] += until[phase] - rank.until[phase];
      rank.until = until;
      if (rank.waits == nullptr) continue;
      const std::int64_t waited = rank.waits->waited_before(to_ns, rank.waits_begun);
      bin.waited_ns += std::max<std::int64_t>(waited - std::exchange(rank.waited_ns, waited), 0);
    }
    return bin;
  }

 private:
  struct OfRank {
    analysis::PhaseTimeline::Cursor phases;
    analysis::PhaseTimeline::Totals until;
    const WaitTimeline* waits;
    std::size_t waits_begun;
    std::int64_t waited_ns;
  };
  std::vector<OfRank> ranks_;
};

// Writes pixels: one rectangle for each share would take most of a frame's time.
class BinPainter {
 public:
  BinPainter(QImage& strip, const Theme& theme)
      : pixels_(reinterpret_cast<QRgb*>(strip.bits())),
        line_(strip.bytesPerLine() / qsizetype{sizeof(QRgb)}),
        height_(strip.height()),
        waiting_(waiting_colour(theme)) {
    for (const Phase phase : phase_order) colours_[static_cast<std::size_t>(phase)] = phase_colour(phase, theme);
  }

  // A rank may begin or end within the bin. Then its time fills only the lower part of the column.
  void paint(int left, int right, const Bin& bin, double whole_ns) {
    double sum = 0;
    int y = height_;
    const auto add = [&](double ns, QRgb colour) {
      sum += ns;
      const int top = std::max(0, height_ - static_cast<int>(sum / whole_ns * height_ + 0.5));
      while (y > top) {
        QRgb* line = pixels_ + --y * line_;
        std::fill(line + left, line + right, colour);
      }
    };
    for (const Phase phase : phase_order) {
      auto ns = static_cast<double>(bin.phases[static_cast<std::size_t>(phase)]);
      if (ns <= 0) continue;
      if (phase == Phase::communication) {
        const double waited = std::min(ns, static_cast<double>(bin.waited_ns));
        add(waited, waiting_);
        ns -= waited;
      }
      add(ns, colours_[static_cast<std::size_t>(phase)]);
    }
  }

 private:
  QRgb* pixels_;
  qsizetype line_;  // in pixels
  int height_;
  QRgb waiting_;
  std::array<QRgb, phase_order.size()> colours_{};
};

QImage shares(std::span<const RankIndex* const> ranks, std::span<const WaitTimeline* const> waits, const TimeAxis& axis,
              int height, const Theme& theme, int bin_width) {
  QImage strip(axis.width(), height, QImage::Format_ARGB32_Premultiplied);
  strip.fill(Qt::transparent);
  BinPainter painter(strip, theme);
  auto from = static_cast<std::int64_t>(axis.time_at(0));
  Shares shares(ranks, waits, from);
  for (int x = 0; x < axis.width(); x += bin_width) {
    const int end = std::min(x + bin_width, axis.width());
    const auto to = static_cast<std::int64_t>(axis.time_at(end));
    const auto whole = static_cast<double>(std::max<std::int64_t>(to - from, 1)) * static_cast<double>(ranks.size());
    painter.paint(x, end, shares.next(to), whole);
    from = to;
  }
  return strip;
}

void paint_pattern(QPainter& painter, const QRect& box, QRgb background, QRgb lines) {
  painter.fillRect(box, QColor(background));
  painter.fillRect(box, QBrush(QColor(lines), Qt::BDiagPattern));
}

}  // namespace phase_strip

DrawCounts paint_phases(QPainter& painter, const RankIndex& rank, const WaitTimeline* waits, const TimeAxis& axis,
                        const QRect& rect, const Theme& theme, LabelTexts* labels, const QImage& shares) {
  DrawCounts counts{.rectangles = 1, .labels = 0};
  const QImage strip = shares.isNull() ? shares_of(rank, waits, axis, rect.height(), theme) : shares;
  if (strip.isNull()) {
    counts = phase_strip::paint_intervals(painter, rank, waits, axis, rect, theme, labels);
  } else {
    painter.drawImage(rect.topLeft(), strip);
  }
  counts += paint_unrecorded(painter, rank.unrecorded, axis, rect, theme, labels != nullptr);
  return counts;
}

QImage shares_of(const RankIndex& rank, const WaitTimeline* waits, const TimeAxis& axis, int height,
                 const Theme& theme) {
  const TimeRange visible = axis.visible();
  const std::size_t intervals = rank.phases->count_between(static_cast<std::int64_t>(visible.begin_ns),
                                                           static_cast<std::int64_t>(visible.end_ns));
  const auto width = static_cast<std::size_t>(axis.width());
  // Intervals of two pixels or more on average are drawn themselves. Otherwise bins of about two dozen intervals are
  // drawn: narrower bins would show a moiré pattern of iterations against columns.
  if (2 * intervals <= width) return {};
  const int bin = static_cast<int>(std::clamp<std::size_t>(24 * width / intervals, 2, 12));
  const RankIndex* const ranks[] = {&rank};
  const WaitTimeline* const of_ranks[] = {waits};
  return phase_strip::shares(ranks, of_ranks, axis, height, theme, bin);
}

QImage phase_shares(const Run& run, std::span<const std::size_t> ranks, std::span<const WaitTimeline> waits,
                    const TimeAxis& axis, int height, const Theme& theme, int bin) {
  std::vector<const RankIndex*> indexes;
  std::vector<const WaitTimeline*> of_ranks;
  for (const std::size_t rank : ranks) {
    indexes.push_back(&run.ranks[rank]);
    of_ranks.push_back(waits.empty() ? nullptr : &waits[rank]);
  }
  return phase_strip::shares(indexes, of_ranks, axis, height, theme, bin);
}

QString waited_text(const Run& run, const Wait& wait) {
  return QString("%1 for rank %2").arg(duration_text(wait.length_ns())).arg(run.trace.ranks[wait.for_rank].rank);
}

void paint_hatching(QPainter& painter, const QRect& box, const Theme& theme) {
  phase_strip::paint_pattern(painter, box, theme.background, theme.faint_text);
}

void paint_waiting(QPainter& painter, const QRect& box, const Theme& theme) {
  phase_strip::paint_pattern(painter, box, phase_strip::waiting_colour(theme), phase_strip::waiting_lines(theme));
}

DrawCounts paint_unrecorded(QPainter& painter, const std::vector<Unrecorded>& stretches, const TimeAxis& axis,
                            const QRect& rect, const Theme& theme, bool labels) {
  constexpr int least_width = 2;
  DrawCounts counts;
  const auto begin = static_cast<std::int64_t>(axis.visible().begin_ns);
  auto stretch = std::ranges::partition_point(stretches, [&](const Unrecorded& one) { return one.end_ns < begin; });
  int drawn_to = 0;
  for (; stretch != stretches.end(); ++stretch) {
    const double from = axis.x_of(static_cast<double>(stretch->start_ns));
    if (from >= axis.width()) break;
    const double to = std::min(axis.x_of(static_cast<double>(stretch->end_ns)), double(axis.width()));
    const int left = std::max(drawn_to, static_cast<int>(std::floor(std::max(from, 0.0))));
    const int right = std::min(std::max(static_cast<int>(std::ceil(to)), left + least_width), axis.width());
    if (right <= left) continue;
    const QRect box(rect.left() + left, rect.top(), right - left, rect.height());
    paint_hatching(painter, box, theme);
    ++counts.rectangles;
    const int text_width = painter.fontMetrics().horizontalAdvance(stretch->text) + 10;
    if (labels && text_width + 4 <= box.width()) {
      const QRect behind(box.left() + 2, box.top() + 2, text_width, box.height() - 4);
      painter.fillRect(behind, QColor(theme.background));
      if (paint_label(painter, behind.adjusted(0, 0, 4, 0), stretch->text, theme.background)) ++counts.labels;
    }
    drawn_to = right;
  }
  return counts;
}

}  // namespace paceline::viewer
