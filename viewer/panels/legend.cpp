// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/legend.h"

#include <QPainter>
#include <utility>

#include "analysis/phases/phase_rules.h"
#include "viewer/drawing/phase_strip.h"
#include "viewer/drawing/state_strip.h"

namespace paceline::viewer {

namespace legend {

constexpr int line_height = 28, more_height = 18, box_size = 12;

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
  const auto place_again = [this] {
    updateGeometry();
    update();
  };
  connect(&document, &Document::analysed, this, place_again);
  connect(&state.time, &VisibleTime::view_changed, this, qOverload<>(&QWidget::update));
  connect(&state.arrangement, &Arrangement::folds_changed, this, place_again);
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
  setAccessibleName(states_ ? "Colours of the phases and of the states of threads" : "Colours of the phases");
}

Legend::Places Legend::place(int width) const {
  std::vector<Entry> entries;
  for (const analysis::Phase phase : phases_) entries.push_back({phase_text(phase), Mark::phase, int(phase)});
  if (document_.insight() != nullptr && analysis::any_timed(document_.insight()->figures.collectives)) {
    entries.push_back({"waiting", Mark::waiting});
  }
  if (unrecorded_) entries.push_back({"not recorded", Mark::unrecorded});
  if (states_ && state_.arrangement.states_shown()) {
    for (const analysis::ThreadState state : state_order) {
      entries.push_back({state_text(state), Mark::state, int(state)});
    }
  }
  // The entries begin below the rows' left edge. In a narrow window they move together and to the left, and those that
  // have no room go to a second line, the states of threads together.
  const QFontMetrics metrics(with_size(font(), 11));
  const int title_width = 12 + metrics.horizontalAdvance("Phases") + 12;
  int left = state_.time.names_width(), to_text = 18, gap = 22, needed = 0;
  for (const Entry& entry : entries) needed += to_text + metrics.horizontalAdvance(entry.text) + gap;
  if (left + needed - gap > width) left = title_width, to_text = 15, gap = 8;
  const auto width_of = [&](const Entry& entry) { return to_text + metrics.horizontalAdvance(entry.text); };
  int x = left, y = (legend::line_height - legend::box_size) / 2, of_states = -gap;
  for (const Entry& entry : entries) of_states += entry.mark == Mark::state ? width_of(entry) + gap : 0;
  bool before_states = true;
  for (Entry& entry : entries) {
    const int wide = width_of(entry);
    const bool first_state = entry.mark == Mark::state && std::exchange(before_states, false);
    if (x > left && x + (first_state ? of_states : wide) > width) x = left, y += legend::more_height;
    entry.at = {x, y};
    entry.text_offset = to_text;
    x += wide + gap;
  }
  return {std::move(entries), x, y + (legend::line_height + legend::box_size) / 2};
}

int Legend::heightForWidth(int width) const { return place(width).bottom; }

void Legend::paintEvent(QPaintEvent*) {
  const Theme theme = Theme::of(palette());
  QPainter painter(this);
  painter.fillRect(rect(), QColor(theme.ruler));
  painter.fillRect(0, 0, width(), 1, QColor(theme.row_line));
  painter.fillRect(0, height() - 1, width(), 1, QColor(theme.row_line));
  painter.setFont(with_size(font(), 11));
  painter.setPen(QColor(theme.faint_text));
  painter.drawText(QRect(12, 0, 180, legend::line_height), Qt::AlignVCenter | Qt::AlignLeft, "Phases");
  const Places places = place(width());
  const QFontMetrics metrics = painter.fontMetrics();
  const auto text_at = [&](const QPoint& box, int x, const QString& text) {
    const int top = box.y() - (legend::line_height - legend::box_size) / 2;
    painter.drawText(QRect(x, top, metrics.horizontalAdvance(text) + 4, legend::line_height),
                     Qt::AlignVCenter | Qt::AlignLeft, text);
  };
  for (const Entry& entry : places.entries) {
    const QRect box(entry.at, QSize(legend::box_size, legend::box_size));
    switch (entry.mark) {
      case Mark::phase:
        painter.fillRect(box, QColor(phase_colour(static_cast<analysis::Phase>(entry.which), theme)));
        break;
      case Mark::waiting:
        paint_waiting(painter, box, theme);
        break;
      case Mark::unrecorded:
        paint_hatching(painter, box, theme);
        break;
      case Mark::state:  // lower, as the strips are
        painter.fillRect(box.adjusted(0, 2, 0, -2),
                         QColor(state_colour(static_cast<analysis::ThreadState>(entry.which), theme)));
    }
    painter.setPen(QColor(theme.text));
    text_at(entry.at, entry.at.x() + entry.text_offset, entry.text);
  }
  const QString rest = "soft colours: by name";  // kernels, and ranges that no rule knows
  if (places.entries.empty() || places.end_x + metrics.horizontalAdvance(rest) > width()) return;
  painter.setPen(QColor(theme.faint_text));
  text_at(places.entries.back().at, places.end_x, rest);
}

}  // namespace paceline::viewer
