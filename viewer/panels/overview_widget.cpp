#include "viewer/panels/overview_widget.h"

#include <QApplication>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "viewer/drawing/time_text.h"

namespace paceline::viewer {
namespace {

constexpr int margin = 6;

}  // namespace

OverviewWidget::OverviewWidget(TimelineWidget* timeline, QWidget* parent) : QWidget(parent), timeline_(timeline) {
  const int ranks = static_cast<int>(std::max<std::size_t>(1, timeline->run().trace.ranks.size()));
  strip_height_ = std::clamp(32 / ranks, 2, 12);
  height_ = std::min(ranks * strip_height_, 96) + 2 * margin;
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setCursor(Qt::PointingHandCursor);
  setAccessibleName("Overview of the whole run");
  setToolTip("The whole run. Drag the frame to move through it.");
  connect(timeline, &TimelineWidget::view_changed, this, qOverload<>(&QWidget::update));
}

TimeAxis OverviewWidget::axis() const {
  TimeAxis axis(timeline_->axis().whole().begin_ns, timeline_->axis().whole().end_ns);
  axis.set_width(timeline_->axis().width());  // in line with the timeline, whose scroll bar takes some room
  return axis;
}

void OverviewWidget::paint_scene() {
  const Theme theme = Theme::of(palette());
  QPainter painter(&scene_);
  painter.fillRect(rect(), QColor(theme.background));
  painter.fillRect(0, 0, header_width, height(), QColor(theme.header));
  painter.fillRect(header_width - 1, 0, 1, height(), QColor(theme.row_line));
  painter.fillRect(0, height() - 1, width(), 1, QColor(theme.row_line));
  QFont small = font();
  small.setPixelSize(11);
  painter.setFont(small);
  painter.setPen(QColor(theme.faint_text));
  const Run& run = timeline_->run();
  painter.drawText(QRect(12, 0, header_width - 24, height()), Qt::AlignVCenter | Qt::AlignLeft,
                   "Whole run, " + duration_text(static_cast<std::int64_t>(run.end_ns - run.begin_ns)));
  const TimeAxis whole = axis();
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const int y = margin + static_cast<int>(rank) * strip_height_;
    if (y + strip_height_ > height() - margin) break;
    const int gap = strip_height_ > 4 ? 1 : 0;
    paint_phases(painter, run.ranks[rank], whole, QRect(header_width, y, whole.width(), strip_height_ - gap), theme,
                 false);
  }
}

void OverviewWidget::paintEvent(QPaintEvent*) {
  const qreal ratio = devicePixelRatioF();
  if (stale_ || painted_width_ != timeline_->axis().width() || scene_.deviceIndependentSize().toSize() != size() ||
      scene_.devicePixelRatio() != ratio) {
    scene_ = QPixmap(size() * ratio);
    scene_.setDevicePixelRatio(ratio);
    paint_scene();
    painted_width_ = timeline_->axis().width();
    stale_ = false;
  }
  QPainter painter(this);
  painter.drawPixmap(0, 0, scene_);
  const TimeAxis whole = axis();
  const TimeRange view = timeline_->axis().visible();
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

void OverviewWidget::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) {
    stale_ = true;
    update();
  }
}

void OverviewWidget::mousePressEvent(QMouseEvent* event) {
  const double x = event->position().x() - header_width;
  const TimeRange view = timeline_->axis().visible();
  const double time = axis().time_at(x);
  // Inside the frame it is taken where it is; elsewhere it comes to the pointer.
  const bool inside = time >= view.begin_ns && time <= view.end_ns;
  grip_ = inside ? axis().x_of((view.begin_ns + view.end_ns) / 2) - x : 0;
  mouseMoveEvent(event);
}

void OverviewWidget::mouseMoveEvent(QMouseEvent* event) {
  if (!(event->buttons() & Qt::LeftButton)) return;
  const double time = axis().time_at(event->position().x() - header_width + grip_);
  const double half = timeline_->axis().visible().length() / 2;
  timeline_->show_part({time - half, time + half});
}

void OverviewWidget::wheelEvent(QWheelEvent* event) { QApplication::sendEvent(timeline_->viewport(), event); }

}  // namespace paceline::viewer
