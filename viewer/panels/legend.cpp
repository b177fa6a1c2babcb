#include "viewer/panels/legend.h"

#include <QPainter>

#include "viewer/timeline/palette.h"
#include "viewer/timeline/timeline_painter.h"

namespace paceline::viewer {

std::vector<analysis::Phase> phases_present(const Run& run) {
  std::vector<analysis::Phase> phases;
  for (const analysis::Phase phase : phase_order) {
    for (const RankIndex& rank : run.ranks) {
      if (rank.phases.total_ns[static_cast<std::size_t>(phase)] > 0) {
        phases.push_back(phase);
        break;
      }
    }
  }
  return phases;
}

Legend::Legend(const Run& run, QWidget* parent) : QWidget(parent), phases_(phases_present(run)) {
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
}

}  // namespace paceline::viewer
