#include "viewer/timeline/timeline_widget.h"

#include <QAccessible>
#include <QEvent>
#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "viewer/drawing/time_text.h"

namespace paceline::viewer {

TimelineWidget::TimelineWidget(Document& document, ViewState& state, QWidget* parent)
    : QAbstractScrollArea(parent), document_(document), state_(state), rows_(document, state) {
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName("Timeline");
  viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
  viewport()->setMouseTracking(true);
  viewport()->setCursor(Qt::ArrowCursor);
  verticalScrollBar()->setSingleStep(RowLayout::lowest_level);
  painter_ = std::make_unique<TimelinePainter>(document_, Theme::of(palette()), font());
  connect(&document_, &Document::row_ready, this, [this] {
    misplaced_ = misplaced_ || state_.shown_kinds();  // a filtered row knows its height now
    redraw();
  });
  connect(&document_, &Document::analysed, this, &TimelineWidget::redraw);
  connect(&state_, &ViewState::view_changed, this, [this] {
    if (const int width = viewport()->width() - names_width(); state_.axis().width() != std::max(width, 1)) {
      return state_.set_width(width);  // the column of names has another width, and this comes again
    }
    redraw();
  });
  connect(&state_, &ViewState::filter_changed, this, [this] {
    rows_.set_filter(state_.shown_kinds());
    place_rows();
  });
  connect(&state_, &ViewState::range_changed, viewport(), qOverload<>(&QWidget::update));
  connect(&state_, &ViewState::folds_changed, this, &TimelineWidget::place_rows);
  connect(&state_, &ViewState::revealed, this, &TimelineWidget::scroll_to);
  connect(&state_, &ViewState::rank_wanted, this, [this](std::size_t rank) {
    const auto rows = rows_.rows_of(rank);
    if (!rows.empty()) verticalScrollBar()->setValue(rows.front().y);
  });
  connect(&state_, &ViewState::step_wanted, this, &TimelineWidget::step);
  connect(&state_, &ViewState::timeline_wanted, this, [this] { setFocus(); });
  connect(&state_, &ViewState::page_wanted, this, [this](int pages) {
    const int room = viewport()->height() - ruler_height, level = rows_.level_height();
    verticalScrollBar()->setValue(scroll_y() + pages * std::max(level, room - level));
  });
  connect(&state_, &ViewState::selection_changed, this, [this] {
    redraw();
    announce_selection();
  });
}

int TimelineWidget::scroll_y() const { return verticalScrollBar()->value(); }

void TimelineWidget::redraw() {
  stale_ = true;
  viewport()->update();
}

void TimelineWidget::place_rows() {
  misplaced_ = false;
  const int room = std::max(0, viewport()->height() - ruler_height);
  rows_.place(room);
  verticalScrollBar()->setPageStep(room);
  verticalScrollBar()->setRange(0, std::max(0, rows_.height() - room));
  redraw();
}

void TimelineWidget::scroll_to(const SliceRef& slice) {
  const auto box = box_of(slice);
  if (!box) return;
  const int level = rows_.level_height();
  if (box->top() < ruler_height) verticalScrollBar()->setValue(scroll_y() + box->top() - ruler_height - level);
  const int below = box->top() + level - viewport()->height();
  if (below > 0) verticalScrollBar()->setValue(scroll_y() + below + level);
}

const PlacedRow* TimelineWidget::row_at(const QPoint& position) const {
  return position.y() < ruler_height ? nullptr : rows_.at(position.y() - ruler_height + scroll_y());
}

RowPoint TimelineWidget::point_in(const PlacedRow& placed, const QPoint& position) const {
  const TimeAxis& axis = state_.axis();
  return {.y = position.y() - ruler_height + scroll_y() - placed.y,
          .level_height = rows_.level_height(),
          .time_ns = axis.time_at(column_at(position)),
          .ns_per_pixel = axis.ns_per_pixel(),
          .end_ns = axis.visible().end_ns};
}

std::optional<SliceRef> TimelineWidget::slice_at(const QPoint& position) const {
  const PlacedRow* placed = row_at(position);
  if (position.x() < names_width() || placed == nullptr) return std::nullopt;
  return placed->row->slice_at(point_in(*placed, position));
}

std::optional<QRect> TimelineWidget::box_of(const SliceRef& ref) const {
  const PlacedRow* placed = rows_.row_of(ref);
  if (placed == nullptr) return std::nullopt;
  const auto [top, bottom] = *placed->row->place_of(ref, rows_.level_height());
  const auto& slices = slices_of(document_.run(), ref);
  const TimeAxis& axis = state_.axis();
  const double width = axis.width();
  const double from = std::clamp(axis.x_of(double(slices.start_ns[ref.slice])), -4.0, width + 4);
  const double to = std::clamp(axis.x_of(double(slices.end_ns(ref.slice))), -4.0, width + 4);
  const int left = static_cast<int>(std::lround(from)), right = std::max(left + 1, static_cast<int>(std::lround(to)));
  const int y = placed->y + top + ruler_height - scroll_y();
  return QRect(names_width() + left, y, right - left, bottom - top - 1);
}

void TimelineWidget::paintEvent(QPaintEvent*) {
  if (misplaced_) place_rows();
  const qreal ratio = devicePixelRatioF();
  const QSize size = viewport()->size();
  if (scene_.deviceIndependentSize().toSize() != size || scene_.devicePixelRatio() != ratio) {
    scene_ = QPixmap(size * ratio);
    scene_.setDevicePixelRatio(ratio);
    stale_ = true;
  }
  // Hovering and measuring only draw their overlay over the picture of the rows.
  if (stale_) {
    QPainter painter(&scene_);
    std::optional<analysis::NameId> marked;
    const auto selected = state_.selected();
    if (selected && !selected->mark) marked = kind_of(document_.run(), *selected).name;
    counts_ = painter_->paint(painter, size, state_, rows_, scroll_y(), marked);
    stale_ = false;
  }
  QPainter painter(viewport());
  painter.drawPixmap(0, 0, scene_);
  paint_overlay(painter);
}

void TimelineWidget::paint_overlay(QPainter& painter) {
  const Theme& theme = painter_->theme();
  painter.setClipRect(names_width(), 0, viewport()->width() - names_width(), viewport()->height());
  if (const auto range = state_.selected_range()) paint_range(painter, *range);
  if (pointer_ && column_at(*pointer_) >= 0 && drag_ != Drag::pan) {
    painter.fillRect(pointer_->x(), 0, 1, viewport()->height(), QColor(theme.crosshair));
    const TimeAxis& axis = state_.axis();
    const QString text = time_text(axis.time_at(column_at(*pointer_)), axis.ns_per_pixel(), axis.visible().end_ns);
    // Beside the ruler, where it hides nothing.
    painter.setClipping(false);
    painter.setFont(with_size(font(), 11, true));
    painter.setPen(QColor(theme.text));
    painter.drawText(QRect(12, ruler_height / 2 - 1, names_width() - 20, ruler_height / 2),
                     Qt::AlignVCenter | Qt::AlignLeft, "at " + text);
  }
  painter.setClipRect(names_width(), ruler_height, viewport()->width() - names_width(), viewport()->height());
  const auto selected = state_.selected();
  if (const auto box = selected ? box_of(*selected) : std::nullopt) {
    painter.setPen(QPen(QColor(theme.selection), 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(*box);
  }
  if (hasFocus()) {
    painter.setClipping(false);
    painter.fillRect(0, 0, 2, viewport()->height(), palette().highlight());
  }
}

void TimelineWidget::paint_range(QPainter& painter, const TimeRange& range) {
  const Theme& theme = painter_->theme();
  const TimeAxis& axis = state_.axis();
  const double width = axis.width();
  const int left =
      names_width() + static_cast<int>(std::lround(std::clamp(axis.x_of(range.begin_ns), -2.0, width + 2)));
  const int right = names_width() + static_cast<int>(std::lround(std::clamp(axis.x_of(range.end_ns), -2.0, width + 2)));
  QColor veil(theme.background);
  veil.setAlpha(140);
  painter.fillRect(names_width(), ruler_height, left - names_width(), viewport()->height(), veil);
  painter.fillRect(right, ruler_height, viewport()->width() - right, viewport()->height(), veil);
  const QColor edge = palette().color(QPalette::Highlight);
  painter.fillRect(left, 0, 1, viewport()->height(), edge);
  painter.fillRect(right, 0, 1, viewport()->height(), edge);
  painter.setFont(with_size(font(), 11, true));
  const QString text = duration_text(static_cast<std::int64_t>(range.length()));
  const int text_width = painter.fontMetrics().horizontalAdvance(text) + 14;
  const int middle =
      std::clamp((left + right) / 2, names_width() + text_width / 2, viewport()->width() - text_width / 2);
  const QRect box(middle - text_width / 2, ruler_height - 20, text_width, 19);
  painter.fillRect(left, ruler_height - 3, right - left, 3, edge);
  painter.fillRect(box, edge);
  painter.setPen(palette().color(QPalette::HighlightedText));
  painter.drawText(box, Qt::AlignCenter, text);
}

void TimelineWidget::resizeEvent(QResizeEvent*) {
  state_.set_width(viewport()->width() - names_width());
  place_rows();
}

void TimelineWidget::changeEvent(QEvent* event) {
  QAbstractScrollArea::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) {
    painter_ = std::make_unique<TimelinePainter>(document_, Theme::of(palette()), font());
    redraw();
  }
}

void TimelineWidget::scrollContentsBy(int, int) { redraw(); }

void TimelineWidget::announce_selection() {
  QString text = "nothing selected";
  if (const auto selected = state_.selected()) {
    const Run& run = document_.run();
    text = QString("%1, %2, rank %3, %4")
               .arg(slice_title(run, *selected), duration_text(slices_of(run, *selected).duration_ns[selected->slice]))
               .arg(run.trace.ranks[selected->rank].rank)
               .arg(QString::fromStdString(track_of(run, *selected).label));
  }
  setAccessibleDescription(text);
  QAccessibleEvent event(this, QAccessible::DescriptionChanged);
  QAccessible::updateAccessibility(&event);
}

}  // namespace paceline::viewer
