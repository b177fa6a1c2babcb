// What the mouse, the wheel and the keys do to the timeline. The table of keys is in session/actions.cpp.
#include <QApplication>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "analysis/text/numbers.h"
#include "viewer/drawing/time_text.h"
#include "viewer/session/actions.h"
#include "viewer/timeline/timeline_widget.h"

namespace paceline::viewer {

void TimelineWidget::wheelEvent(QWheelEvent* event) {
  const QPoint turned = event->angleDelta();
  const auto modifiers = event->modifiers() & (Qt::ShiftModifier | Qt::ControlModifier);
  const bool over_names = event->position().x() < names_width() && !(modifiers & Qt::ShiftModifier) && turned.y() != 0;
  if (over_names || modifiers == (Qt::ShiftModifier | Qt::ControlModifier)) {
    const double steps = (turned.y() != 0 ? turned.y() : turned.x()) / 120.0;
    verticalScrollBar()->setValue(scroll_y() - static_cast<int>(std::lround(steps * 3 * rows_.level_height())));
  } else {
    state_.turn_wheel(*event, event->position().x() - names_width());
  }
  event->accept();
}

void TimelineWidget::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton) return;
  pressed_ = dragged_ = event->position().toPoint();
  drag_ = on_edge_of_names(pressed_) ? Drag::names : Drag::undecided;
  if (drag_ == Drag::names) return;
  if (event->modifiers() & Qt::ShiftModifier && pressed_.x() >= names_width()) {
    drag_ = Drag::range;
    range_anchor_ns_ = state_.axis().time_at(column_at(pressed_));
  }
}

void TimelineWidget::mouseMoveEvent(QMouseEvent* event) {
  const QPoint position = event->position().toPoint();
  set_pointer(position);
  if (drag_ == Drag::names) return state_.set_names_width(position.x());
  if (drag_ == Drag::none) viewport()->setCursor(on_edge_of_names(position) ? Qt::SplitHCursor : Qt::ArrowCursor);
  if (drag_ == Drag::undecided && (position - pressed_).manhattanLength() >= QApplication::startDragDistance() &&
      pressed_.x() >= names_width()) {
    drag_ = Drag::pan;
    viewport()->setCursor(Qt::ClosedHandCursor);
  }
  if (drag_ == Drag::pan) {
    const QPoint moved = position - dragged_;
    dragged_ = position;
    verticalScrollBar()->setValue(scroll_y() - moved.y());
    state_.pan(-moved.x());
  } else if (drag_ == Drag::range) {
    const TimeRange whole = state_.axis().whole();
    const double time = std::clamp(state_.axis().time_at(column_at(position)), whole.begin_ns, whole.end_ns);
    state_.select_range(TimeRange{std::min(range_anchor_ns_, time), std::max(range_anchor_ns_, time)});
  }
  viewport()->update();
}

void TimelineWidget::mouseReleaseEvent(QMouseEvent* event) {
  const Drag drag = drag_;
  drag_ = Drag::none;
  viewport()->setCursor(Qt::ArrowCursor);
  const QPoint position = event->position().toPoint();
  const auto range = state_.selected_range();
  if (drag == Drag::range && range && range->length() < 2 * state_.axis().ns_per_pixel()) {
    state_.select_range(std::nullopt);
  }
  if (drag != Drag::undecided) return;
  // A click.
  if (position.x() < names_width()) {
    if (const PlacedRow* placed = row_at(position)) placed->row->header_clicked(state_);
    return;
  }
  const auto slice = slice_at(position);
  if (!slice) state_.select_range(std::nullopt);
  state_.select(slice);
}

void TimelineWidget::mouseDoubleClickEvent(QMouseEvent* event) {
  const QPoint position = event->position().toPoint();
  const PlacedRow* placed = row_at(position);
  if (position.x() < names_width() || placed == nullptr) return;
  if (const auto slice = slice_at(position)) {
    state_.zoom_to(*slice);
  } else if (const auto range = placed->row->range_at(state_.axis().time_at(column_at(position)))) {
    state_.jump_to(*range);
  }
}

void TimelineWidget::keyPressEvent(QKeyEvent* event) {
  if (const Action* action = timeline_action(event->keyCombination())) {
    action->view(state_);
  } else {
    QAbstractScrollArea::keyPressEvent(event);
  }
}

// With nothing selected: selects an outermost slice near the middle of the first visible row that has one.
void TimelineWidget::step(ViewState::Step step) {
  using Step = ViewState::Step;
  const auto selected = state_.selected();
  if (selected && step == Step::row_above) return step_to_row(*selected, -1);
  if (selected && step == Step::row_below) return step_to_row(*selected, 1);
  if (selected && step == Step::rank_above) return step_to_rank(*selected, -1);
  if (selected && step == Step::rank_below) return step_to_rank(*selected, 1);
  if (selected && !selected->mark) {
    const PlacedRow* placed = rows_.row_of(*selected);
    if (const auto to = placed ? placed->row->neighbour(*selected, step) : std::nullopt) state_.reveal(*to);
    return;
  }
  const TimeAxis& axis = state_.axis();
  const double middle = axis.time_at(axis.width() / 2.0), half = axis.visible().length() / 2;
  for (const PlacedRow& placed : rows_.rows_between(scroll_y(), scroll_y() + viewport()->height() - ruler_height)) {
    if (const auto slice = placed.row->slice_near(middle, half)) return state_.reveal(*slice);
  }
}

// Selects the slice of another row that is at the time and on the level of this one, or nearest to that. One of the
// same name comes first: ranks do the same work at slightly different times.
bool TimelineWidget::reveal_near(const SliceRef& from, const PlacedRow& row) {
  const Run& run = document_.run();
  const auto& slices = slices_of(run, from);
  const double start = double(slices.start_ns[from.slice]), end = double(slices.end_ns(from.slice));
  const double middle = (start + end) / 2;
  const unsigned level = from.mark ? 0 : slices.depth[from.slice];
  for (const double time : {middle, start, end}) {
    const auto slice = row.row->slice_near(time, 0, level);
    if (!slice || kind_of(run, *slice).name != kind_of(run, from).name) continue;
    state_.reveal(*slice);
    return true;
  }
  for (const double slack : {0.0, state_.axis().visible().length() / 2, state_.axis().whole().length()}) {
    if (const auto slice = row.row->slice_near(middle, slack, level)) {
      state_.reveal(*slice);
      return true;
    }
  }
  return false;
}

void TimelineWidget::step_to_row(const SliceRef& from, int rows) {
  const PlacedRow* placed = rows_.row_of(from);
  if (placed == nullptr) return;
  const std::ptrdiff_t count = std::ssize(rows_.rows());
  for (std::ptrdiff_t at = placed - rows_.rows().data() + rows; at >= 0 && at < count; at += rows) {
    if (reveal_near(from, rows_.rows()[static_cast<std::size_t>(at)])) return;
  }
}

// To the row of the same position, or the last one of a rank with fewer rows.
void TimelineWidget::step_to_rank(const SliceRef& from, int ranks) {
  const PlacedRow* placed = rows_.row_of(from);
  const auto to = rows_.rank_beside(from.rank, ranks);
  if (!to || placed == nullptr) return;
  const bool folded = state_.collapsed(*to);
  const std::ptrdiff_t row = placed - rows_.rows_of(from.rank).data();
  state_.set_collapsed(*to, false);
  const auto rows = rows_.rows_of(*to);
  for (std::ptrdiff_t at = std::min(row, std::ssize(rows) - 1); at >= 0; --at) {
    if (!reveal_near(from, rows[static_cast<std::size_t>(at)])) continue;
    if (folded) state_.set_collapsed(from.rank, true);  // as many ranks are unfolded as before
    return scroll_to(*state_.selected());
  }
  state_.set_collapsed(*to, folded);
}

void TimelineWidget::set_pointer(std::optional<QPoint> pointer) {
  pointer_ = pointer;
  const bool over_rows = pointer && column_at(*pointer) >= 0;
  state_.set_pointer(over_rows ? std::optional(column_at(*pointer)) : std::nullopt);
}

bool TimelineWidget::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::Leave) {
    set_pointer(std::nullopt);
    viewport()->update();
  } else if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const QString text = tooltip_at(help->pos());
    if (text.isEmpty()) {
      QToolTip::hideText();
    } else {
      QToolTip::showText(help->globalPos(), text, viewport());
    }
    return true;
  }
  return QAbstractScrollArea::viewportEvent(event);
}

QString TimelineWidget::tooltip_at(const QPoint& position) const {
  const PlacedRow* placed = row_at(position);
  if (placed == nullptr) return {};
  return position.x() >= names_width() ? placed->row->tooltip(point_in(*placed, position))
                                       : placed->row->header_tooltip(state_);
}

}  // namespace paceline::viewer
