#include "viewer/panels/overview.h"

#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "viewer/drawing/phase_strip.h"
#include "viewer/drawing/time_text.h"

namespace paceline::viewer {
namespace overview {

constexpr int most_strips = 28;  // of 2 pixels

// Strip s stands for the ranks from s · n / strips on.
QImage draw(const Run& run, std::span<const WaitTimeline> waits, const TimeAxis& axis, int strips, int strip_height,
            const Theme& theme, const Ticket& ticket) {
  QImage image(axis.width(), strips * strip_height, QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::transparent);
  QPainter painter(&image);
  const std::size_t ranks = run.ranks.size();
  for (std::size_t s = 0; s < static_cast<std::size_t>(strips) && !ticket.cancelled(); ++s) {
    std::vector<std::size_t> of_strip(ranks * (s + 1) / std::size_t(strips) - ranks * s / std::size_t(strips));
    std::iota(of_strip.begin(), of_strip.end(), ranks * s / std::size_t(strips));
    const int gap = strip_height > 4 ? 1 : 0;
    const QRect rect(0, static_cast<int>(s) * strip_height, axis.width(), strip_height - gap);
    if (of_strip.size() == 1) {
      const RankIndex& rank = run.ranks[of_strip.front()];
      paint_phases(painter, rank, waits.empty() ? nullptr : &waits[of_strip.front()], axis, rect, theme, false);
    } else {
      painter.drawImage(rect.topLeft(), phase_shares(run, of_strip, waits, axis, rect.height(), theme, 2));
    }
  }
  return image;
}

}  // namespace overview

Overview::Overview(Document& document, ViewState& state)
    : document_(document), state_(state), task_(document.background()) {
  const int ranks = static_cast<int>(std::max<std::size_t>(1, document.run().ranks.size()));
  strips_ = std::min(ranks, overview::most_strips);
  strip_height_ = std::clamp(32 / strips_, 2, 12);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setCursor(Qt::PointingHandCursor);
  setAccessibleName("Overview of the whole run");
  setToolTip("The whole run. Drag the frame to move through it.");
  connect(&state, &ViewState::view_changed, this, qOverload<>(&QWidget::update));
  connect(&document, &Document::analysed, this, &Overview::start);
}

void Overview::start() {
  drawn_width_ = state_.axis().width();
  std::shared_ptr<const Insight> insight = document_.shared_insight();
  const auto work = [run = document_.shared_run(), insight, axis = axis(), strips = strips_, height = strip_height_,
                     theme = Theme::of(palette())](const Ticket& ticket) {
    std::span<const WaitTimeline> waits;
    if (insight) waits = insight->waits;
    return overview::draw(*run, waits, axis, strips, height, theme, ticket);
  };
  task_.start(work, [this](QImage drawn) {
    image_ = std::move(drawn);
    update();
  });
}

TimeAxis Overview::axis() const {
  TimeAxis axis(state_.axis().whole().begin_ns, state_.axis().whole().end_ns);
  axis.set_width(state_.axis().width());  // in line with the timeline, which is narrower by its scroll bar
  return axis;
}

void Overview::paintEvent(QPaintEvent*) {
  if (drawn_width_ != state_.axis().width()) start();
  const Theme theme = Theme::of(palette());
  const int names = state_.names_width();
  QPainter painter(this);
  painter.fillRect(rect(), QColor(theme.background));
  painter.fillRect(0, 0, names, height(), QColor(theme.header));
  painter.fillRect(names - 1, 0, 1, height(), QColor(theme.row_line));
  painter.fillRect(0, height() - 1, width(), 1, QColor(theme.row_line));
  painter.setFont(with_size(font(), 11));
  painter.setPen(QColor(theme.faint_text));
  const Run& run = document_.run();
  painter.drawText(QRect(12, 0, names - 24, height()), Qt::AlignVCenter | Qt::AlignLeft,
                   "Whole run, " + duration_text(static_cast<std::int64_t>(run.end_ns - run.begin_ns)));
  // While another width is being drawn, the picture of the last one is stretched.
  painter.drawImage(QRect(names, margin, state_.axis().width(), height_of_strips()), image_);
  const TimeAxis whole = axis();
  const TimeRange view = state_.axis().visible();
  const int left = state_.names_width() + static_cast<int>(std::lround(whole.x_of(view.begin_ns)));
  const int right = std::max(left + 3, state_.names_width() + static_cast<int>(std::lround(whole.x_of(view.end_ns))));
  QColor veil(theme.background);
  veil.setAlpha(theme.dark ? 150 : 165);
  painter.fillRect(state_.names_width(), 0, left - state_.names_width(), height() - 1, veil);
  painter.fillRect(right, 0, width() - right, height() - 1, veil);
  const bool everything = view == whole.whole();
  if (!everything) {
    painter.setPen(QPen(palette().color(QPalette::Highlight), 2));
    painter.drawRect(QRect(left, 1, right - left, height() - 3));
  }
}

void Overview::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) start();
}

void Overview::mousePressEvent(QMouseEvent* event) {
  const double x = event->position().x() - state_.names_width();
  const TimeRange view = state_.axis().visible();
  const double time = axis().time_at(x);
  // The frame is gripped where it is pressed. A press elsewhere moves its middle to the pointer.
  const bool inside = time >= view.begin_ns && time <= view.end_ns;
  grip_ = inside ? axis().x_of((view.begin_ns + view.end_ns) / 2) - x : 0;
  mouseMoveEvent(event);
}

void Overview::mouseMoveEvent(QMouseEvent* event) {
  if (!(event->buttons() & Qt::LeftButton)) return;
  const double time = axis().time_at(event->position().x() - state_.names_width() + grip_);
  const double half = state_.axis().visible().length() / 2;
  state_.show_part({time - half, time + half});
}

void Overview::wheelEvent(QWheelEvent* event) {
  state_.turn_wheel(*event, event->position().x() - state_.names_width());
  event->accept();
}

}  // namespace paceline::viewer
