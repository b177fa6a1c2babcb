// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/iteration_ruler.h"

#include <QFontMetrics>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/statistics/statistics.h"
#include "viewer/drawing/palette.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace iteration_ruler {

// Where the numbers do not fit into their iterations, every second, fifth, tenth … is written. Returns that step; 1
// where they fit, 0 where the iterations are too narrow to be told apart.
std::int64_t numbered(const std::vector<RunIteration>& iterations, const TimeAxis& axis, const QFontMetrics& metrics) {
  constexpr double narrowest = 5;
  if (iterations.empty()) return 0;
  const double all_ns = double(iterations.back().end_ns - iterations.front().start_ns);
  const double width = all_ns / double(iterations.size()) / axis.ns_per_pixel();
  if (width < narrowest) return 0;
  const int needed = metrics.horizontalAdvance(QString::number(iterations.back().number)) + 12;
  for (std::int64_t power = 1;; power *= 10) {
    for (const std::int64_t step : {power, 2 * power, 5 * power}) {
      if (double(step) * width >= needed) return step;
    }
  }
}

}  // namespace iteration_ruler

IterationRuler::IterationRuler(Document& document, ViewState& state)
    : state_(state), iterations_(document.run().iterations), texts_(with_size(font(), 11)) {
  std::vector<std::int64_t> durations;
  for (const RunIteration& iteration : iterations_) {
    if (iteration.finished) durations.push_back(iteration.duration_ns());
  }
  if (!durations.empty()) slow_ns_ = analysis::quantile(durations, 0.95);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAccessibleName("Iterations");
  if (iterations_.empty()) hide();  // showing it here would open a window of its own
  connect(&state.time, &VisibleTime::view_changed, this, qOverload<>(&QWidget::update));
  connect(&state.selection, &Selection::range_changed, this, qOverload<>(&QWidget::update));
}

const RunIteration* IterationRuler::at(double x) const {
  const double time = state_.time.axis().time_at(x - state_.time.names_width());
  if (x < state_.time.names_width()) return nullptr;
  // The last one that has begun: ends of ranks may reach into the next iteration.
  const auto after =
      std::ranges::partition_point(iterations_, [&](const RunIteration& one) { return double(one.start_ns) <= time; });
  return after == iterations_.begin() || double((after - 1)->end_ns) < time ? nullptr : &*(after - 1);
}

void IterationRuler::paintEvent(QPaintEvent*) {
  const Theme theme = Theme::of(palette());
  const TimeAxis& axis = state_.time.axis();
  const int names = state_.time.names_width();
  QPainter painter(this);
  painter.fillRect(rect(), QColor(theme.ruler));
  painter.fillRect(0, 0, names, height(), QColor(theme.header));
  if (const QFont small = with_size(font(), 11); small != texts_.font()) texts_ = LabelTexts(small);
  painter.setFont(texts_.font());
  painter.setPen(QColor(theme.faint_text));
  painter.drawText(QRect(12, 0, names - 20, height()), Qt::AlignVCenter | Qt::AlignLeft, "Iterations");
  painter.setClipRect(names, 0, width() - names, height());
  const QRgb slow = blend(theme.text, theme.background, 45);
  const std::int64_t every = iteration_ruler::numbered(iterations_, axis, painter.fontMetrics());
  std::vector<std::pair<QRect, QString>> wider;  // numbers that reach into the next iterations, which are drawn later
  constexpr int least_text_width = 12;           // of one digit with its margins
  int drawn_to = 0;
  auto one = std::ranges::partition_point(
      iterations_, [&](const RunIteration& i) { return double(i.end_ns) < axis.visible().begin_ns; });
  for (; one != iterations_.end() && double(one->start_ns) < axis.visible().end_ns; ++one) {
    // Iterations touch: one ends where the next one begins.
    const double end =
        one + 1 != iterations_.end() ? std::min(double(one->end_ns), double((one + 1)->start_ns)) : double(one->end_ns);
    const int left =
        std::max(drawn_to, static_cast<int>(std::lround(std::max(axis.x_of(double(one->start_ns)), -1.0))));
    const int right = static_cast<int>(std::lround(std::min(axis.x_of(end), axis.width() + 1.0)));
    if (right <= left) continue;
    const QRgb colour = one->finished && one->duration_ns() > slow_ns_ ? slow : theme.container;
    const QRect box(names + left, 1, std::max(right - left - 1, 1), height() - 2);
    painter.fillRect(box, QColor(colour));
    drawn_to = right;
    if (every <= 1 && box.width() < least_text_width) continue;
    const QString number = QString::number(one->number);
    const QString longer = one->finished ? number + "   " + duration_text(one->duration_ns()) : number;
    const auto fits = [&](const QString& text) { return texts_.width(text) + 8 <= box.width(); };
    const bool inside =
        fits(number) && paint_label(painter, box, fits(longer) ? longer : number, colour, Qt::ElideRight, &texts_);
    if (!inside && every > 1 && one->number % every == 0) {
      wider.emplace_back(QRect(box.left(), box.top(), width(), box.height()), number);
    }
  }
  for (const auto& [box, number] : wider) paint_label(painter, box, number, theme.container);
  painter.setClipping(false);
  painter.fillRect(0, height() - 1, width(), 1, QColor(theme.row_line));
  painter.fillRect(names - 1, 0, 1, height(), QColor(theme.row_line));
}

bool IterationRuler::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  show_tooltip(event, *this, [this](const QPoint& position) {
    const RunIteration* iteration = at(position.x());
    if (iteration == nullptr) return QString();
    const QString lines = iteration->finished
                              ? tooltip_line("mean over the ranks", duration_text(iteration->duration_ns())) +
                                    tooltip_line("95th percentile", duration_text(slow_ns_))
                              : tooltip_line("not in the figures", "not all ranks finished it");
    return tooltip(QString("Iteration %1").arg(iteration->number), lines);
  });
  return true;
}

void IterationRuler::mousePressEvent(QMouseEvent* event) {
  const RunIteration* iteration = at(event->position().x());
  state_.selection.select_range(
      iteration ? std::optional(TimeRange{double(iteration->start_ns), double(iteration->end_ns)}) : std::nullopt);
}

void IterationRuler::mouseDoubleClickEvent(QMouseEvent* event) {
  const RunIteration* iteration = at(event->position().x());
  if (iteration == nullptr) return;
  const double begin = double(iteration->start_ns), length = double(iteration->end_ns) - begin;
  state_.time.jump_to({begin - 0.03 * length, begin + 1.03 * length});
}

void IterationRuler::wheelEvent(QWheelEvent* event) {
  state_.time.turn_wheel(*event, event->position().x() - state_.time.names_width());
  event->accept();
}

}  // namespace paceline::viewer
