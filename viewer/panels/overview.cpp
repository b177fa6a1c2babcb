// SPDX-License-Identifier: Apache-2.0
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

#include "viewer/drawing/phase_strip.h"
#include "viewer/text/time_text.h"

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
      paint_phases(painter, rank, waits.empty() ? nullptr : &waits[of_strip.front()], axis, rect, theme, nullptr);
    } else {
      painter.drawImage(rect.topLeft(), phase_shares(run, of_strip, waits, axis, rect.height(), theme, 2));
    }
  }
  return image;
}

std::vector<double> skew_of(std::span<const WaitTimeline> waits, const TimeAxis& axis) {
  std::vector<double> skew(waits.empty() ? 0 : std::size_t(axis.width()), 0);
  for (const WaitTimeline& rank : waits) {
    for (const Wait& wait : rank.between(axis.visible().begin_ns, axis.visible().end_ns)) {
      const auto column = static_cast<std::ptrdiff_t>(axis.x_of(double(wait.until_ns)));
      double& most = skew[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(column, 0, std::ssize(skew) - 1))];
      most = std::max(most, double(wait.length_ns()));
    }
  }
  return skew;
}

struct Drawn {
  QImage image;
  std::vector<double> skew_ns;
};

}  // namespace overview

Overview::Overview(Document& document, VisibleTime& time)
    : document_(document), time_(time), task_(document.background()) {
  const int ranks = static_cast<int>(std::max<std::size_t>(1, document.run().ranks.size()));
  strips_ = std::min(ranks, overview::most_strips);
  strip_height_ = std::clamp(32 / strips_, 2, 12);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setMouseTracking(true);
  setAccessibleName("Overview of the whole run");
  setToolTip("The whole run. Drag the frame to move through it, and its handles to change where it begins or ends.");
  connect(&time, &VisibleTime::view_changed, this, qOverload<>(&QWidget::update));
  connect(&document, &Document::analysed, this, &Overview::start);
}

void Overview::start() {
  drawn_width_ = time_.axis().width();
  std::shared_ptr<const Insight> insight = document_.shared_insight();
  const auto work = [run = document_.shared_run(), insight, axis = axis(), strips = strips_, height = strip_height_,
                     theme = Theme::of(palette())](const Ticket& ticket) {
    std::span<const WaitTimeline> waits;
    if (insight) waits = insight->waits;
    return overview::Drawn{overview::draw(*run, waits, axis, strips, height, theme, ticket),
                           overview::skew_of(waits, axis)};
  };
  task_.start(work, [this](overview::Drawn drawn) {
    image_ = std::move(drawn.image);
    skew_ns_ = std::move(drawn.skew_ns);
    update();
  });
}

TimeAxis Overview::axis() const {
  TimeAxis axis(time_.axis().whole().begin_ns, time_.axis().whole().end_ns);
  axis.set_width(time_.axis().width());  // in line with the timeline, which is narrower by its scroll bar
  return axis;
}

int Overview::column_of(double time_ns) const {
  return time_.names_width() + static_cast<int>(std::lround(axis().x_of(time_ns)));
}

void Overview::paint_skew(QPainter& painter, const Theme& theme) {
  if (skew_ns_.empty() || skew_height() == 0) return;
  const double most = *std::ranges::max_element(skew_ns_);
  const int room = skew_height() - 2, bottom = margin + height_of_strips() + skew_height();
  const bool known = analysis::any_timed(document_.insight()->figures.collectives);
  painter.drawText(QRect(12, bottom - skew_height(), time_.names_width() - 24, skew_height()),
                   Qt::AlignVCenter | Qt::AlignLeft,
                   most > 0 ? "Arrival skew, at most " + duration_text(std::int64_t(most))
                   : known  ? QString("No arrival skew")
                            : QString("Arrival skew is not known"));
  const QColor colour(phase_colour(analysis::Phase::communication, theme));
  for (std::size_t x = 0; x < skew_ns_.size() && most > 0; ++x) {
    const int tall = static_cast<int>(std::ceil(room * skew_ns_[x] / most));
    painter.fillRect(time_.names_width() + int(x), bottom - tall, 1, tall, colour);
  }
}

void Overview::paintEvent(QPaintEvent*) {
  if (drawn_width_ != time_.axis().width()) start();
  const Theme theme = Theme::of(palette());
  const int names = time_.names_width();
  QPainter painter(this);
  painter.fillRect(rect(), QColor(theme.background));
  painter.fillRect(0, 0, names, height(), QColor(theme.header));
  painter.fillRect(names - 1, 0, 1, height(), QColor(theme.row_line));
  painter.fillRect(0, height() - 1, width(), 1, QColor(theme.row_line));
  painter.setFont(with_size(font(), 11));
  painter.setPen(QColor(theme.faint_text));
  const Run& run = document_.run();
  painter.drawText(QRect(12, 0, names - 24, height() - skew_height()), Qt::AlignVCenter | Qt::AlignLeft,
                   "Whole run, " + length_text(run.end_ns - run.begin_ns));
  // While another width is being drawn, the picture of the last one is stretched.
  painter.drawImage(QRect(names, margin, time_.axis().width(), height_of_strips()), image_);
  paint_skew(painter, theme);
  const int left = left_handle(), right = std::max(left + 3, right_handle());
  QColor veil(theme.background);
  veil.setAlpha(theme.dark ? 150 : 165);
  painter.fillRect(time_.names_width(), 0, left - time_.names_width(), height() - 1, veil);
  painter.fillRect(right, 0, width() - right, height() - 1, veil);
  const QColor edge = palette().color(QPalette::Highlight);
  if (time_.axis().visible() != time_.axis().whole()) {
    painter.setPen(QPen(edge, 2));
    painter.drawRect(QRect(left, 1, right - left, height() - 3));
  }
  constexpr int handle_width = 6, handle_height = 18;
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(QColor(theme.background), 1));
  painter.setBrush(edge);
  for (const int x : {left, right}) {
    painter.drawRoundedRect(QRect(x - handle_width / 2, (height() - handle_height) / 2, handle_width, handle_height), 2,
                            2);
  }
}

// The handles lie above the frame.
Overview::Drag Overview::drag_at(double x) const {
  constexpr double reach = 5;
  const double to_left = std::abs(x - left_handle()), to_right = std::abs(x - right_handle());
  if (std::min(to_left, to_right) > reach) return Drag::frame;
  // Where both handles are near, the outer side decides.
  if (to_left != to_right) return to_left < to_right ? Drag::left : Drag::right;
  return x < left_handle() ? Drag::left : Drag::right;
}

void Overview::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) start();
}

void Overview::mousePressEvent(QMouseEvent* event) {
  drag_ = drag_at(event->position().x());
  if (drag_ != Drag::frame) return;
  const double x = event->position().x() - time_.names_width();
  const TimeRange view = time_.axis().visible();
  const double time = axis().time_at(x);
  // The frame is gripped where it is pressed. A press elsewhere moves its middle to the pointer.
  const bool inside = time >= view.begin_ns && time <= view.end_ns;
  grip_ = inside ? axis().x_of((view.begin_ns + view.end_ns) / 2) - x : 0;
  mouseMoveEvent(event);
}

void Overview::mouseMoveEvent(QMouseEvent* event) {
  if (!(event->buttons() & Qt::LeftButton)) {
    setCursor(drag_at(event->position().x()) == Drag::frame ? Qt::PointingHandCursor : Qt::SizeHorCursor);
    return;
  }
  const double x = event->position().x() - time_.names_width();
  const TimeRange view = time_.axis().visible();
  const double half = view.length() / 2, shortest = TimeAxis::shortest_view_ns;
  if (drag_ == Drag::left) {
    time_.show_part({std::min(axis().time_at(x), view.end_ns - shortest), view.end_ns});
  } else if (drag_ == Drag::right) {
    time_.show_part({view.begin_ns, std::max(axis().time_at(x), view.begin_ns + shortest)});
  } else {
    const double time = axis().time_at(x + grip_);
    time_.show_part({time - half, time + half});
  }
}

void Overview::wheelEvent(QWheelEvent* event) {
  time_.turn_wheel(*event, event->position().x() - time_.names_width());
  event->accept();
}

}  // namespace paceline::viewer
