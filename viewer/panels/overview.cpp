#include "viewer/panels/overview.h"

#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "viewer/drawing/phase_strip.h"
#include "viewer/drawing/time_text.h"

namespace paceline::viewer {
namespace overview {

constexpr int margin = 6;

}  // namespace overview

Overview::Overview(Document& document, ViewState& state) : run_(document.run()), state_(state) {
  const int ranks = static_cast<int>(std::max<std::size_t>(1, run_.ranks.size()));
  strip_height_ = std::clamp(32 / ranks, 2, 12);
  height_ = std::min(ranks * strip_height_, 96) + 2 * overview::margin;
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setCursor(Qt::PointingHandCursor);
  setAccessibleName("Overview of the whole run");
  setToolTip("The whole run. Drag the frame to move through it.");
  connect(&state, &ViewState::view_changed, this, qOverload<>(&QWidget::update));
}

TimeAxis Overview::axis() const {
  TimeAxis axis(state_.axis().whole().begin_ns, state_.axis().whole().end_ns);
  axis.set_width(state_.axis().width());  // in line with the timeline, which is narrower by its scroll bar
  return axis;
}

void Overview::paint_scene() {
  const Theme theme = Theme::of(palette());
  QPainter painter(&scene_);
  painter.fillRect(rect(), QColor(theme.background));
  painter.fillRect(0, 0, header_width, height(), QColor(theme.header));
  painter.fillRect(header_width - 1, 0, 1, height(), QColor(theme.row_line));
  painter.fillRect(0, height() - 1, width(), 1, QColor(theme.row_line));
  painter.setFont(with_size(font(), 11));
  painter.setPen(QColor(theme.faint_text));
  painter.drawText(QRect(12, 0, header_width - 24, height()), Qt::AlignVCenter | Qt::AlignLeft,
                   "Whole run, " + duration_text(static_cast<std::int64_t>(run_.end_ns - run_.begin_ns)));
  const TimeAxis whole = axis();
  for (std::size_t rank = 0; rank < run_.ranks.size(); ++rank) {
    const int y = overview::margin + static_cast<int>(rank) * strip_height_;
    if (y + strip_height_ > height() - overview::margin) break;
    const int gap = strip_height_ > 4 ? 1 : 0;
    paint_phases(painter, run_.ranks[rank], whole, QRect(header_width, y, whole.width(), strip_height_ - gap), theme,
                 false);
  }
}

void Overview::paintEvent(QPaintEvent*) {
  const qreal ratio = devicePixelRatioF();
  if (stale_ || painted_width_ != state_.axis().width() || scene_.deviceIndependentSize().toSize() != size() ||
      scene_.devicePixelRatio() != ratio) {
    scene_ = QPixmap(size() * ratio);
    scene_.setDevicePixelRatio(ratio);
    paint_scene();
    painted_width_ = state_.axis().width();
    stale_ = false;
  }
  QPainter painter(this);
  painter.drawPixmap(0, 0, scene_);
  const TimeAxis whole = axis();
  const TimeRange view = state_.axis().visible();
  const int left = header_width + static_cast<int>(std::lround(whole.x_of(view.begin_ns)));
  const int right = std::max(left + 3, header_width + static_cast<int>(std::lround(whole.x_of(view.end_ns))));
  const Theme theme = Theme::of(palette());
  QColor veil(theme.background);
  veil.setAlpha(theme.dark ? 150 : 165);
  painter.fillRect(header_width, 0, left - header_width, height() - 1, veil);
  painter.fillRect(right, 0, width() - right, height() - 1, veil);
  const bool everything = view == whole.whole();
  if (!everything) {
    painter.setPen(QPen(palette().color(QPalette::Highlight), 2));
    painter.drawRect(QRect(left, 1, right - left, height() - 3));
  }
}

void Overview::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) {
    stale_ = true;
    update();
  }
}

void Overview::mousePressEvent(QMouseEvent* event) {
  const double x = event->position().x() - header_width;
  const TimeRange view = state_.axis().visible();
  const double time = axis().time_at(x);
  // The frame is gripped where it is pressed. A press elsewhere moves its middle to the pointer.
  const bool inside = time >= view.begin_ns && time <= view.end_ns;
  grip_ = inside ? axis().x_of((view.begin_ns + view.end_ns) / 2) - x : 0;
  mouseMoveEvent(event);
}

void Overview::mouseMoveEvent(QMouseEvent* event) {
  if (!(event->buttons() & Qt::LeftButton)) return;
  const double time = axis().time_at(event->position().x() - header_width + grip_);
  const double half = state_.axis().visible().length() / 2;
  state_.show_part({time - half, time + half});
}

void Overview::wheelEvent(QWheelEvent* event) {
  state_.turn_wheel(*event, event->position().x() - header_width);
  event->accept();
}

}  // namespace paceline::viewer
