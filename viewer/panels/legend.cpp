#include "viewer/panels/legend.h"

#include <QPainter>

#include "analysis/metrics/phase_rules.h"
#include "viewer/drawing/phase_strip.h"

namespace paceline::viewer {

namespace legend {

using Present = std::array<bool, analysis::phase_count>;

Present spent_in(const Run& run) {
  Present present{};
  for (const RankIndex& rank : run.ranks) {
    for (std::size_t phase = 0; phase < present.size(); ++phase) {
      present[phase] = present[phase] || rank.phases->totals()[phase] > 0;
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

}  // namespace legend

std::vector<analysis::Phase> phases_present(const Run& run) { return legend::in_order(legend::spent_in(run)); }

std::vector<analysis::Phase> phases_drawn(const Run& run) {
  legend::Present present = legend::spent_in(run);
  analysis::PhaseTable rules(run.trace);
  for (analysis::KindId kind = 0; kind < run.trace.kinds.size(); ++kind) {
    if (const auto phase = rules.phase(kind)) present[static_cast<std::size_t>(*phase)] = true;
  }
  return legend::in_order(present);
}

Legend::Legend(Document& document, ViewState& state)
    : document_(document), state_(state), phases_(phases_drawn(document.run())) {
  for (const analysis::Rank& rank : document.run().trace.ranks) {
    unrecorded_ = unrecorded_ || !rank.lost.empty() || !rank.gaps.empty();
    for (const analysis::Track& track : rank.tracks) unrecorded_ = unrecorded_ || !track.lost.empty();
  }
  connect(&document, &Document::analysed, this, qOverload<>(&QWidget::update));
  connect(&state, &ViewState::view_changed, this, qOverload<>(&QWidget::update));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAccessibleName("Colours of the phases");
}

void Legend::paintEvent(QPaintEvent*) {
  const Theme theme = Theme::of(palette());
  QPainter painter(this);
  painter.fillRect(rect(), QColor(theme.ruler));
  painter.fillRect(0, 0, width(), 1, QColor(theme.row_line));
  painter.fillRect(0, height() - 1, width(), 1, QColor(theme.row_line));
  painter.setFont(with_size(font(), 11));
  painter.setPen(QColor(theme.faint_text));
  painter.drawText(QRect(12, 0, 180, height()), Qt::AlignVCenter | Qt::AlignLeft, "Phases");
  int x = state_.names_width();
  // Draws a box and a text behind it. Returns false if there is no room.
  const auto add = [&](const QString& text, auto paint_box) {
    const int text_width = painter.fontMetrics().horizontalAdvance(text);
    if (x + 18 + text_width > width()) return false;
    paint_box(QRect(x, (height() - 12) / 2, 12, 12));
    painter.setPen(QColor(theme.text));
    painter.drawText(QRect(x + 18, 0, text_width + 4, height()), Qt::AlignVCenter | Qt::AlignLeft, text);
    x += 18 + text_width + 22;
    return true;
  };
  for (const analysis::Phase phase : phases_) {
    const auto fill = [&](const QRect& box) { painter.fillRect(box, QColor(phase_colour(phase, theme))); };
    if (!add(phase_text(phase), fill)) return;
  }
  const bool waits = document_.insight() != nullptr && analysis::any_timed(document_.insight()->figures.collectives);
  if (waits && !add("waiting", [&](const QRect& box) { paint_waiting(painter, box, theme); })) return;
  if (unrecorded_ && !add("not recorded", [&](const QRect& box) { paint_hatching(painter, box, theme); })) return;
  const QString rest = "soft colours: by name";  // kernels, and ranges that no rule knows
  if (x + painter.fontMetrics().horizontalAdvance(rest) > width()) return;
  painter.setPen(QColor(theme.faint_text));
  painter.drawText(QRect(x, 0, width() - x, height()), Qt::AlignVCenter | Qt::AlignLeft, rest);
}

}  // namespace paceline::viewer
