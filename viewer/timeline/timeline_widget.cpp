#include "viewer/timeline/timeline_widget.h"

#include <QAccessible>
#include <QEvent>
#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "viewer/drawing/time_text.h"

namespace paceline::viewer {
namespace {

constexpr std::size_t history_length = 200;

}  // namespace

TimelineWidget::TimelineWidget(std::shared_ptr<const Run> run, QWidget* parent)
    : QAbstractScrollArea(parent), run_(std::move(run)), axis_(run_->begin_ns, run_->end_ns), rows_(*run_) {
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName("Timeline");
  viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
  viewport()->setMouseTracking(true);
  viewport()->setCursor(Qt::ArrowCursor);
  verticalScrollBar()->setSingleStep(RowLayout::lowest_row);
  painter_ = std::make_unique<TimelinePainter>(*run_, Theme::of(palette()), font());
}

int TimelineWidget::scroll_y() const { return verticalScrollBar()->value(); }

void TimelineWidget::redraw() {
  stale_ = true;
  viewport()->update();
}

void TimelineWidget::after_move() {
  redraw();
  Q_EMIT view_changed();
}

void TimelineWidget::jump_to(TimeRange range) {
  const TimeRange before = axis_.visible();
  axis_.show(range);
  if (axis_.visible() == before) return;
  history_.push_back(before);
  if (history_.size() > history_length) history_.erase(history_.begin());
  after_move();
}

void TimelineWidget::show_previous() {
  if (history_.empty()) return;
  axis_.show(history_.back());
  history_.pop_back();
  after_move();
}

void TimelineWidget::jump_to_iteration(int steps) {
  for (const RankIndex& rank : run_->ranks) {
    if (rank.iterations.empty()) continue;
    const TimeRange view = axis_.visible();
    const double middle = (view.begin_ns + view.end_ns) / 2;
    const auto after = std::partition_point(rank.iterations.begin(), rank.iterations.end(), [&](const auto& iteration) {
      return double(iteration.start_ns) <= middle;
    });
    const auto last = std::ssize(rank.iterations) - 1;
    const auto at = std::clamp<std::ptrdiff_t>(after - rank.iterations.begin() - 1 + steps, 0, last);
    const auto& iteration = rank.iterations[static_cast<std::size_t>(at)];
    const auto begin = static_cast<double>(iteration.start_ns), length = static_cast<double>(iteration.duration_ns);
    jump_to({begin - 0.03 * length, begin + 1.03 * length});
    return;
  }
}

bool TimelineWidget::show_iterations(std::int64_t first, std::int64_t last) {
  for (const RankIndex& rank : run_->ranks) {
    std::optional<TimeRange> range;
    for (const auto& iteration : rank.iterations) {
      if (iteration.number < first || iteration.number > last) continue;
      const auto begin = static_cast<double>(iteration.start_ns);
      const double end = begin + static_cast<double>(iteration.duration_ns);
      range = range ? TimeRange{std::min(range->begin_ns, begin), std::max(range->end_ns, end)} : TimeRange{begin, end};
    }
    if (!range) continue;
    jump_to({range->begin_ns - 0.02 * range->length(), range->end_ns + 0.02 * range->length()});
    return true;
  }
  return false;
}

void TimelineWidget::zoom(double x, double factor) {
  axis_.zoom(x, factor);
  after_move();
}

void TimelineWidget::zoom_at_pointer(double factor) {
  const double x = pointer_ && column_at(*pointer_) >= 0 ? column_at(*pointer_) : axis_.width() / 2.0;
  zoom(x, factor);
}

void TimelineWidget::pan(double pixels) {
  axis_.pan(pixels);
  after_move();
}

void TimelineWidget::show_part(TimeRange range) {
  axis_.show(range);
  after_move();
}

void TimelineWidget::select(std::optional<SliceRef> slice) {
  if (slice == selected_) return;
  selected_ = slice;
  redraw();
  announce_selection();
  Q_EMIT selection_changed();
}

void TimelineWidget::reveal(const SliceRef& ref) {
  if (rows_.collapsed(ref.rank)) {
    rows_.set_collapsed(ref.rank, false);
    update_scroll_bar();
  }
  const auto& slices = slices_of(*run_, ref);
  const auto start = static_cast<double>(slices.start_ns[ref.slice]);
  const auto end = static_cast<double>(slices.end_ns(ref.slice));
  const TimeRange view = axis_.visible();
  if (end < view.begin_ns || start > view.end_ns) {
    axis_.center_on((start + end) / 2);
    after_move();
  }
  if (const TrackRows* rows = rows_.rows_of(ref.rank, ref.track)) {
    const int y = ref.mark ? rows->y : rows->depth_y(slices.depth[ref.slice]);
    const int room = viewport()->height() - ruler_height;
    if (y < scroll_y()) verticalScrollBar()->setValue(y - rows_.depth_height());
    if (y + rows_.depth_height() > scroll_y() + room) {
      verticalScrollBar()->setValue(y + 2 * rows_.depth_height() - room);
    }
  }
  select(ref);
}

void TimelineWidget::zoom_to(const SliceRef& ref) {
  const auto& slices = slices_of(*run_, ref);
  const auto start = static_cast<double>(slices.start_ns[ref.slice]);
  const double length = std::max(static_cast<double>(slices.duration_ns[ref.slice]), TimeAxis::shortest_view_ns / 2);
  jump_to({start - length / 4, start + length * 1.25});
}

void TimelineWidget::zoom_to_selection() {
  if (selected_range_) {
    jump_to(*selected_range_);
  } else if (selected_) {
    zoom_to(*selected_);
  }
}

void TimelineWidget::select_range(std::optional<TimeRange> range) {
  if (range == selected_range_) return;
  selected_range_ = range;
  viewport()->update();
  Q_EMIT range_changed();
}

void TimelineWidget::set_all_collapsed(bool collapsed) {
  for (std::size_t rank = 0; rank < rows_.ranks().size(); ++rank) rows_.set_collapsed(rank, collapsed);
  update_scroll_bar();
  redraw();
}

void TimelineWidget::set_counters_unfolded(bool unfolded) {
  for (std::size_t rank = 0; rank < rows_.ranks().size(); ++rank) rows_.set_counters_unfolded(rank, unfolded);
  update_scroll_bar();
  redraw();
}

std::optional<SliceRef> TimelineWidget::slice_at(const QPoint& position) const {
  if (position.x() < header_width || position.y() < ruler_height) return std::nullopt;
  const auto hit = rows_.at(position.y() - ruler_height + scroll_y());
  if (!hit || !hit->track) return std::nullopt;
  const double time = axis_.time_at(column_at(position) + 0.5), pixel = axis_.ns_per_pixel();
  SliceRef ref{hit->rank, *hit->track, 0, !hit->depth};
  const auto& slices = slices_of(*run_, ref);
  const auto& index = ref.mark ? run_->ranks[ref.rank].marks[ref.track] : run_->ranks[ref.rank].slices[ref.track];
  for (const double slack : {0.5 * pixel, 3 * pixel}) {
    // Marks share one lane whatever their depth.
    for (unsigned depth = ref.mark ? 0 : *hit->depth; depth < (ref.mark ? index.depths() : *hit->depth + 1); ++depth) {
      if (const auto slice = index.slice_at(slices, depth, time, slack)) {
        ref.slice = *slice;
        return ref;
      }
    }
  }
  return std::nullopt;
}

std::optional<QRect> TimelineWidget::box_of(const SliceRef& ref) const {
  const TrackRows* rows = rows_.rows_of(ref.rank, ref.track);
  if (rows == nullptr) return std::nullopt;
  const auto& slices = slices_of(*run_, ref);
  const double width = axis_.width();
  const double from = std::clamp(axis_.x_of(double(slices.start_ns[ref.slice])), -4.0, width + 4);
  const double to = std::clamp(axis_.x_of(double(slices.end_ns(ref.slice))), -4.0, width + 4);
  const int left = static_cast<int>(std::lround(from)), right = std::max(left + 1, static_cast<int>(std::lround(to)));
  const int y = (ref.mark ? rows->y : rows->depth_y(slices.depth[ref.slice])) + ruler_height - scroll_y();
  return QRect(header_width + left, y, right - left, (ref.mark ? RowLayout::mark_lane : rows_.depth_height()) - 1);
}

void TimelineWidget::paintEvent(QPaintEvent*) {
  const qreal ratio = devicePixelRatioF();
  const QSize size = viewport()->size();
  if (scene_.deviceIndependentSize().toSize() != size || scene_.devicePixelRatio() != ratio) {
    scene_ = QPixmap(size * ratio);
    scene_.setDevicePixelRatio(ratio);
    stale_ = true;
  }
  // Hovering and measuring only lay their overlay over what is drawn already.
  if (stale_) {
    QPainter painter(&scene_);
    std::optional<analysis::NameId> marked;
    if (selected_ && !selected_->mark) {
      marked = run_->trace.kind_of(slices_of(*run_, *selected_), selected_->slice).name;
    }
    counts_ = painter_->paint(painter, size, axis_, rows_, scroll_y(), marked);
    stale_ = false;
  }
  QPainter painter(viewport());
  painter.drawPixmap(0, 0, scene_);
  paint_overlay(painter);
}

void TimelineWidget::paint_overlay(QPainter& painter) {
  const Theme& theme = painter_->theme();
  painter.setClipRect(header_width, 0, viewport()->width() - header_width, viewport()->height());
  if (selected_range_) paint_range(painter, *selected_range_);
  if (pointer_ && column_at(*pointer_) >= 0 && drag_ != Drag::pan) {
    painter.fillRect(pointer_->x(), 0, 1, viewport()->height(), QColor(theme.crosshair));
    const QString text = time_text(axis_.time_at(column_at(*pointer_)), axis_.ns_per_pixel(), axis_.visible().end_ns);
    QFont small = font();
    small.setPixelSize(11);
    painter.setFont(small);
    const int width = painter.fontMetrics().horizontalAdvance(text) + 12;
    const int left = std::min(pointer_->x() + 1, viewport()->width() - width);
    painter.fillRect(left, 0, width, 18, QColor(theme.crosshair));
    painter.setPen(QColor(theme.background));
    painter.drawText(QRect(left, 0, width, 18), Qt::AlignCenter, text);
  }
  painter.setClipRect(header_width, ruler_height, viewport()->width() - header_width, viewport()->height());
  if (selected_) {
    if (const auto box = box_of(*selected_)) {
      painter.setPen(QPen(QColor(theme.selection), 2));
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(QRectF(*box).adjusted(0, 0, 0, 0));
    }
  }
  if (hasFocus()) {
    painter.setClipping(false);
    painter.fillRect(0, 0, 2, viewport()->height(), palette().highlight());
  }
}

void TimelineWidget::paint_range(QPainter& painter, const TimeRange& range) {
  const Theme& theme = painter_->theme();
  const double width = axis_.width();
  const int left =
      header_width + static_cast<int>(std::lround(std::clamp(axis_.x_of(range.begin_ns), -2.0, width + 2)));
  const int right = header_width + static_cast<int>(std::lround(std::clamp(axis_.x_of(range.end_ns), -2.0, width + 2)));
  QColor veil(theme.background);
  veil.setAlpha(140);
  painter.fillRect(header_width, ruler_height, left - header_width, viewport()->height(), veil);
  painter.fillRect(right, ruler_height, viewport()->width() - right, viewport()->height(), veil);
  const QColor edge = palette().color(QPalette::Highlight);
  painter.fillRect(left, 0, 1, viewport()->height(), edge);
  painter.fillRect(right, 0, 1, viewport()->height(), edge);
  QFont small = font();
  small.setPixelSize(11);
  small.setBold(true);
  painter.setFont(small);
  const QString text = duration_text(static_cast<std::int64_t>(range.length()));
  const int text_width = painter.fontMetrics().horizontalAdvance(text) + 14;
  const int middle =
      std::clamp((left + right) / 2, header_width + text_width / 2, viewport()->width() - text_width / 2);
  const QRect box(middle - text_width / 2, ruler_height - 20, text_width, 19);
  painter.fillRect(left, ruler_height - 3, right - left, 3, edge);
  painter.fillRect(box, edge);
  painter.setPen(palette().color(QPalette::HighlightedText));
  painter.drawText(box, Qt::AlignCenter, text);
}

void TimelineWidget::update_scroll_bar() {
  const int room = std::max(0, viewport()->height() - ruler_height);
  rows_.set_room(room);
  verticalScrollBar()->setPageStep(room);
  verticalScrollBar()->setRange(0, std::max(0, rows_.height() - room));
}

void TimelineWidget::resizeEvent(QResizeEvent*) {
  axis_.set_width(viewport()->width() - header_width);
  update_scroll_bar();
  after_move();
}

void TimelineWidget::changeEvent(QEvent* event) {
  QAbstractScrollArea::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) {
    painter_ = std::make_unique<TimelinePainter>(*run_, Theme::of(palette()), font());
    redraw();
  }
}

void TimelineWidget::scrollContentsBy(int, int) { redraw(); }

void TimelineWidget::announce_selection() {
  QString text = "nothing selected";
  if (selected_) {
    const auto& track = run_->trace.ranks[selected_->rank].tracks[selected_->track];
    const auto& slices = slices_of(*run_, *selected_);
    text = QString("%1, %2, rank %3, %4")
               .arg(slice_title(*run_, track, slices, selected_->slice),
                    duration_text(slices.duration_ns[selected_->slice]))
               .arg(run_->trace.ranks[selected_->rank].rank)
               .arg(QString::fromStdString(track.label));
  }
  setAccessibleDescription(text);
  QAccessibleEvent event(this, QAccessible::DescriptionChanged);
  QAccessible::updateAccessibility(&event);
}

}  // namespace paceline::viewer
