// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/legend.h"

#include <QPainter>
#include <functional>

#include "analysis/phases/phase_rules.h"
#include "viewer/drawing/phase_strip.h"
#include "viewer/drawing/state_strip.h"

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
    for (const analysis::Track& track : rank.tracks) {
      unrecorded_ = unrecorded_ || !track.lost.empty();
      states_ = states_ || !track.states.empty();
    }
  }
  connect(&document, &Document::analysed, this, qOverload<>(&QWidget::update));
  connect(&state, &ViewState::view_changed, this, qOverload<>(&QWidget::update));
  connect(&state, &ViewState::folds_changed, this, qOverload<>(&QWidget::update));
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
  struct Entry {
    QString text;
    std::function<void(const QRect&)> paint_box;
  };
  std::vector<Entry> entries;
  for (const analysis::Phase phase : phases_) {
    entries.push_back({phase_text(phase),
                       [&, phase](const QRect& box) { painter.fillRect(box, QColor(phase_colour(phase, theme))); }});
  }
  if (document_.insight() != nullptr && analysis::any_timed(document_.insight()->figures.collectives)) {
    entries.push_back({"waiting", [&](const QRect& box) { paint_waiting(painter, box, theme); }});
  }
  if (unrecorded_) {
    entries.push_back({"not recorded", [&](const QRect& box) { paint_hatching(painter, box, theme); }});
  }
  if (states_ && state_.states_shown()) {
    for (const analysis::ThreadState state : state_order) {
      entries.push_back({state_text(state), [&, state](const QRect& box) {
                           painter.fillRect(box.adjusted(0, 2, 0, -2), QColor(state_colour(state, theme)));
                         }});
    }
  }
  // The entries begin below the rows' left edge. In a narrow window they move together and to the left.
  constexpr int box_size = 12;
  const QFontMetrics metrics = painter.fontMetrics();
  int x = state_.names_width(), to_text = 18, gap = 22, needed = 0;
  for (const Entry& entry : entries) needed += to_text + metrics.horizontalAdvance(entry.text) + gap;
  if (x + needed - gap > width()) x = 12 + metrics.horizontalAdvance("Phases") + 12, to_text = 15, gap = 8;
  for (const auto& [text, paint_box] : entries) {
    const int text_width = metrics.horizontalAdvance(text);
    if (x + to_text + text_width > width()) return;
    paint_box(QRect(x, (height() - box_size) / 2, box_size, box_size));
    painter.setPen(QColor(theme.text));
    painter.drawText(QRect(x + to_text, 0, text_width + 4, height()), Qt::AlignVCenter | Qt::AlignLeft, text);
    x += to_text + text_width + gap;
  }
  const QString rest = "soft colours: by name";  // kernels, and ranges that no rule knows
  if (x + metrics.horizontalAdvance(rest) > width()) return;
  painter.setPen(QColor(theme.faint_text));
  painter.drawText(QRect(x, 0, width() - x, height()), Qt::AlignVCenter | Qt::AlignLeft, rest);
}

}  // namespace paceline::viewer
