#include "viewer/panels/legend.h"

#include <QPainter>

#include "analysis/metrics/phase_rules.h"
#include "viewer/drawing/palette.h"
#include "viewer/timeline/timeline_painter.h"

namespace paceline::viewer {

namespace {

using Present = std::array<bool, analysis::phase_count>;

Present spent_in(const Run& run) {
  Present present{};
  for (const RankIndex& rank : run.ranks) {
    for (std::size_t phase = 0; phase < present.size(); ++phase) {
      present[phase] = present[phase] || rank.phases.total_ns[phase] > 0;
    }
  }
  return present;
}

std::vector<analysis::Phase> in_order(const Present& present) {
  std::vector<analysis::Phase> phases;
  for (const analysis::Phase phase : phase_order) {
    if (present[static_cast<std::size_t>(phase)]) phases.push_back(phase);
  }
  return phases;
}

}  // namespace

std::vector<analysis::Phase> phases_present(const Run& run) { return in_order(spent_in(run)); }

std::vector<analysis::Phase> phases_drawn(const Run& run) {
  Present present = spent_in(run);
  analysis::PhaseTable rules(run.trace);
  for (const analysis::Rank& rank : run.trace.ranks) {
    for (const analysis::Track& track : rank.tracks) {
      for (std::size_t i = 0; i < track.slices.size(); ++i) {
        const auto phase = rules.phase(track.slices.kind[i]);
        if (phase) present[static_cast<std::size_t>(*phase)] = true;
      }
    }
  }
  return in_order(present);
}

Legend::Legend(const Run& run, QWidget* parent) : QWidget(parent), phases_(phases_drawn(run)) {
  for (const analysis::Rank& rank : run.trace.ranks) {
    any_lost_ = any_lost_ || !rank.lost.empty();
    for (const analysis::Track& track : rank.tracks) any_lost_ = any_lost_ || !track.lost.empty();
  }
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAccessibleName("Colours of the phases");
}

QSize Legend::sizeHint() const { return {600, 28}; }

void Legend::paintEvent(QPaintEvent*) {
  const Theme theme = Theme::of(palette());
  QPainter painter(this);
  painter.fillRect(rect(), QColor(theme.ruler));
  painter.fillRect(0, 0, width(), 1, QColor(theme.row_line));
  painter.fillRect(0, height() - 1, width(), 1, QColor(theme.row_line));
  QFont small = font();
  small.setPixelSize(11);
  painter.setFont(small);
  painter.setPen(QColor(theme.faint_text));
  painter.drawText(QRect(12, 0, 180, height()), Qt::AlignVCenter | Qt::AlignLeft, "Phases");
  int x = header_width;
  for (const analysis::Phase phase : phases_) {
    const std::string_view name = analysis::phase_name(phase);
    const QString text = QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
    const int text_width = painter.fontMetrics().horizontalAdvance(text);
    if (x + 18 + text_width > width()) break;
    painter.fillRect(x, (height() - 12) / 2, 12, 12, QColor(phase_colour(phase, theme)));
    painter.setPen(QColor(theme.text));
    painter.drawText(QRect(x + 18, 0, text_width + 4, height()), Qt::AlignVCenter | Qt::AlignLeft, text);
    x += 18 + text_width + 22;
  }
  if (any_lost_) {
    const QString text = "events lost";
    const int text_width = painter.fontMetrics().horizontalAdvance(text);
    if (x + 18 + text_width > width()) return;
    paint_hatching(painter, QRect(x, (height() - 12) / 2, 12, 12), theme);
    painter.setPen(QColor(theme.text));
    painter.drawText(QRect(x + 18, 0, text_width + 4, height()), Qt::AlignVCenter | Qt::AlignLeft, text);
    x += 18 + text_width + 22;
  }
  const QString rest = "soft colours: by name";  // compute kernels, ranges that no rule knows
  if (x + painter.fontMetrics().horizontalAdvance(rest) > width()) return;
  painter.setPen(QColor(theme.faint_text));
  painter.drawText(QRect(x, 0, width() - x, height()), Qt::AlignVCenter | Qt::AlignLeft, rest);
}

}  // namespace paceline::viewer
