// SPDX-License-Identifier: Apache-2.0
// What the mouse, the wheel and the keys do to the timeline. The table of keys is in session/actions.cpp.
#include <QApplication>
#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QScrollBar>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/text/numbers.h"
#include "viewer/drawing/labels.h"
#include "viewer/session/actions.h"
#include "viewer/session/recent_runs.h"
#include "viewer/timeline/colour_menu.h"
#include "viewer/timeline/timeline_widget.h"

namespace paceline::viewer {

void TimelineWidget::wheelEvent(QWheelEvent* event) {
  const QPoint turned = event->angleDelta();
  const auto modifiers = event->modifiers() & (Qt::ShiftModifier | Qt::ControlModifier);
  const bool over_names = event->position().x() < names_width() && !(modifiers & Qt::ShiftModifier) && turned.y() != 0;
  const bool as_chosen = wheel_scrolls() && modifiers == Qt::NoModifier && turned.y() != 0;
  if (over_names || as_chosen || modifiers == (Qt::ShiftModifier | Qt::ControlModifier)) {
    const double steps = (turned.y() != 0 ? turned.y() : turned.x()) / 120.0;
    verticalScrollBar()->setValue(scroll_y() - static_cast<int>(std::lround(steps * 3 * rows_.level_height())));
  } else {
    state_.time.turn_wheel(*event, event->position().x() - names_width());
  }
  event->accept();
}

void TimelineWidget::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton) return;
  pressed_ = dragged_ = event->position().toPoint();
  drag_ = on_edge_of_names(pressed_) ? Drag::names : Drag::undecided;
  if (drag_ == Drag::names || pressed_.x() < names_width()) return;
  const auto modifiers = event->modifiers();
  if (const auto anchor = anchor_of_edge(pressed_)) {
    drag_ = Drag::range;
    range_anchor_ns_ = *anchor;
  } else if (modifiers & (Qt::ShiftModifier | Qt::ControlModifier)) {
    drag_ = modifiers & Qt::ShiftModifier ? Drag::range : Drag::box;
    range_anchor_ns_ = snapped_time(pressed_, modifiers);
    state_.selection.select_range(std::nullopt);
  }
}

void TimelineWidget::mouseMoveEvent(QMouseEvent* event) {
  const QPoint position = event->position().toPoint();
  set_pointer(position);
  if (drag_ == Drag::none) {
    const bool on_edge = on_edge_of_names(position) || anchor_of_edge(position);
    viewport()->setCursor(on_edge ? Qt::SplitHCursor : Qt::ArrowCursor);
  }
  if (drag_ == Drag::undecided && (position - pressed_).manhattanLength() >= QApplication::startDragDistance()) {
    const bool names = pressed_.x() < names_width();
    if (!names || rank_at(pressed_.y())) drag_ = names ? Drag::rank : Drag::pan;
    viewport()->setCursor(Qt::ClosedHandCursor);
  }
  drag_to(position, event->modifiers());
  viewport()->update();
}

void TimelineWidget::drag_to(const QPoint& position, Qt::KeyboardModifiers modifiers) {
  if (drag_ == Drag::names) return state_.time.set_names_width(position.x());
  if (drag_ == Drag::pan) {
    const QPoint moved = position - dragged_;
    dragged_ = position;
    verticalScrollBar()->setValue(scroll_y() - moved.y());
    state_.time.pan(-moved.x());
  } else if (drag_ == Drag::range || drag_ == Drag::box) {
    const double time = snapped_time(position, modifiers);
    const auto ranks = drag_ == Drag::box ? ranks_between(pressed_.y(), position.y()) : state_.selection.ranks();
    state_.selection.select_range(TimeRange{std::min(range_anchor_ns_, time), std::max(range_anchor_ns_, time)}, ranks);
  }
}

void TimelineWidget::mouseReleaseEvent(QMouseEvent* event) {
  const Drag drag = std::exchange(drag_, Drag::none);
  viewport()->setCursor(Qt::ArrowCursor);
  end_drag(drag, event->position().toPoint(), event->modifiers());
}

void TimelineWidget::end_drag(Drag drag, const QPoint& position, Qt::KeyboardModifiers modifiers) {
  const auto range = state_.selection.range();
  if ((drag == Drag::range || drag == Drag::box) && range && range->length() < 2 * state_.time.axis().ns_per_pixel()) {
    state_.selection.select_range(std::nullopt);
  }
  if (drag == Drag::rank) {
    const auto from = rank_at(pressed_.y()), to = rank_at(position.y());
    if (from && to && from->rank != to->rank) state_.arrangement.move_rank_to(from->rank, to->rank);
    viewport()->update();
  }
  const bool adds = modifiers & (Qt::ShiftModifier | Qt::ControlModifier);
  const bool dragged = drag != Drag::undecided && (state_.selection.range() || !adds);
  const bool click = drag == Drag::undecided || ((drag == Drag::box || drag == Drag::range) && !dragged);
  if (!click) return;
  if (position.x() < names_width()) {
    if (const PlacedRow* placed = geometry().row_at(position)) placed->row->header_clicked(state_.arrangement);
    return;
  }
  const auto slice = slice_at(position);
  if (adds) {
    if (slice) state_.selection.toggle(*slice);
    return;
  }
  if (!slice) state_.selection.select_range(std::nullopt);
  state_.selection.select(slice);
}

std::optional<double> TimelineWidget::anchor_of_edge(const QPoint& position) const {
  constexpr int reach = 3;
  const auto range = state_.selection.range();
  if (!range || position.x() < names_width()) return std::nullopt;
  const Geometry geometry = this->geometry();
  if (std::abs(geometry.x_of(range->begin_ns) - position.x()) <= reach) return range->end_ns;
  if (std::abs(geometry.x_of(range->end_ns) - position.x()) <= reach) return range->begin_ns;
  return std::nullopt;
}

double TimelineWidget::snapped_time(const QPoint& position, Qt::KeyboardModifiers modifiers) const {
  constexpr double reach = 6;
  const Geometry geometry = this->geometry();
  const TimeRange whole = state_.time.axis().whole();
  const double time = std::clamp(geometry.time_at(position.x()), whole.begin_ns, whole.end_ns);
  const PlacedRow* placed = geometry.row_at(position);
  if (placed == nullptr || modifiers & Qt::ControlModifier) return time;
  RowPoint point = geometry.point_in(*placed, position);
  return placed->row->edge_near(point, reach * point.ns_per_pixel).value_or(time);
}

std::optional<PlacedRank> TimelineWidget::rank_at(int y) const {
  const int row = geometry().row_y(y);
  const auto ranks = rows_.ranks_between(row, row + 1);
  return y < ruler_height || ranks.empty() ? std::nullopt : std::optional(ranks.front());
}

std::set<std::size_t> TimelineWidget::ranks_between(int y, int other_y) const {
  const int top = geometry().row_y(std::min(y, other_y)), bottom = geometry().row_y(std::max(y, other_y));
  std::set<std::size_t> ranks;
  for (const PlacedRank& placed : rows_.ranks_between(top, bottom + 1)) {
    const bool behind = placed.y >= geometry().pinned_height() && placed.end_y <= geometry().first_scrolled_y();
    if (!behind) ranks.insert(placed.rank);
  }
  return ranks;
}

void TimelineWidget::mouseDoubleClickEvent(QMouseEvent* event) {
  const QPoint position = event->position().toPoint();
  const PlacedRow* placed = geometry().row_at(position);
  if (position.x() < names_width() || placed == nullptr) return;
  if (const auto slice = slice_at(position)) {
    state_.time.zoom_to(*slice);
  } else if (const auto range = placed->row->range_at(state_.time.axis().time_at(column_at(position)))) {
    state_.time.jump_to(*range);
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
void TimelineWidget::step(Commands::Step step) {
  using Step = Commands::Step;
  const auto selected = state_.selection.slice();
  if (selected && step == Step::row_above) return step_to_row(*selected, -1);
  if (selected && step == Step::row_below) return step_to_row(*selected, 1);
  if (selected && step == Step::rank_above) return step_to_rank(*selected, -1);
  if (selected && step == Step::rank_below) return step_to_rank(*selected, 1);
  if (selected && !selected->mark) {
    const PlacedRow* placed = rows_.row_of(*selected);
    if (const auto to = placed ? placed->row->neighbour(*selected, step) : std::nullopt) state_.selection.reveal(*to);
    return;
  }
  const TimeAxis& axis = state_.time.axis();
  const double middle = axis.time_at(axis.width() / 2.0), half = axis.visible().length() / 2;
  for (const PlacedRow& placed : rows_.rows_between(scroll_y(), scroll_y() + viewport()->height() - ruler_height)) {
    if (const auto slice = placed.row->slice_near(middle, half)) return state_.selection.reveal(*slice);
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
    state_.selection.reveal(*slice);
    return true;
  }
  for (const double slack : {0.0, state_.time.axis().visible().length() / 2, state_.time.axis().whole().length()}) {
    if (const auto slice = row.row->slice_near(middle, slack, level)) {
      state_.selection.reveal(*slice);
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

// To the call of the same collective, to the row of the same position, or the last one of a rank with fewer rows.
void TimelineWidget::step_to_rank(const SliceRef& from, int ranks) {
  const PlacedRow* placed = rows_.row_of(from);
  const auto to = rows_.rank_beside(from.rank, ranks);
  if (!to || placed == nullptr) return;
  const bool folded = state_.arrangement.collapsed(*to);
  const std::ptrdiff_t row = placed - rows_.rows_of(from.rank).data();
  state_.arrangement.set_collapsed(*to, false);
  const auto arrive = [&] {
    if (folded) state_.arrangement.set_collapsed(from.rank, true);  // as many ranks are unfolded as before
    scroll_to(*state_.selection.slice());
  };
  if (const Insight* insight = document_.insight()) {
    for (const CollectiveIndex::Call& call : insight->collectives.with(from)) {
      if (call.rank != *to || rows_.row_of(call.ref()) == nullptr) continue;
      state_.selection.reveal(call.ref());
      return arrive();
    }
  }
  const auto rows = rows_.rows_of(*to);
  for (std::ptrdiff_t at = std::min(row, std::ssize(rows) - 1); at >= 0; --at) {
    if (reveal_near(from, rows[static_cast<std::size_t>(at)])) return arrive();
  }
  state_.arrangement.set_collapsed(*to, folded);
}

void TimelineWidget::go_to_partner() {
  const auto selected = state_.selection.slice();
  if (!selected) return;
  const auto partners = links_.partners(*selected);
  if (!partners.empty()) state_.selection.reveal_closely(partners.front());
}

void TimelineWidget::set_pointer(std::optional<QPoint> pointer) {
  pointer_ = pointer;
  const bool over_rows = pointer && column_at(*pointer) >= 0;
  state_.time.set_pointer(over_rows ? std::optional(column_at(*pointer)) : std::nullopt);
  light_up();
}

// What can be done with the rank and the row below the pointer.
void TimelineWidget::contextMenuEvent(QContextMenuEvent* event) {
  const PlacedRow* placed = geometry().row_at(event->pos());
  if (placed == nullptr) return;
  const std::size_t rank = placed->row->rank();
  const QString rank_name = QString("rank %1").arg(document_.run().trace.ranks[rank].rank),
                row_name = placed->row->name();
  const bool pinned = state_.arrangement.pinned(rank);
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  menu->addAction((pinned ? "Unpin " : "Pin ") + rank_name, this,
                  [=, this] { state_.arrangement.set_pinned(rank, !pinned); });
  menu->addAction("Hide " + rank_name, this, [=, this] { state_.arrangement.set_rank_hidden(rank, true); });
  if (!row_name.isEmpty()) {
    const bool row_pinned = state_.arrangement.row_pinned(rank, row_name);
    menu->addAction((row_pinned ? "Unpin " : "Pin ") + row_name + " of " + rank_name, this,
                    [=, this] { state_.arrangement.set_row_pinned(rank, row_name, !row_pinned); });
    menu->addAction(QString("Hide the rows named %1").arg(row_name), this,
                    [=, this] { state_.arrangement.hide_rows(row_name); });
  }
  menu->addAction("Show hidden rows and ranks", this, [=, this] { state_.arrangement.show_hidden(); });
  const Run& run = document_.run();
  std::vector<Coloured> coloured;
  if (const auto slice = slice_at(event->pos())) {
    coloured = coloured_of(run, *slice);
  } else if (column_at(event->pos()) >= 0 && placed->row->is_strip()) {
    coloured = coloured_at(run, rank, state_.time.axis().time_at(column_at(event->pos())));
  }
  for (const Coloured& what : coloured) {
    QMenu* colours = menu->addMenu("Colour of " + what.text());
    connect(colours, &QMenu::aboutToShow, colours, [&run, colours, what] {
      if (colours->isEmpty()) fill_colour_menu(*colours, what, run);
    });
  }
  menu->popup(event->globalPos());
}

// At the selected slice: the colours for its name or its phase.
void TimelineWidget::show_colours(bool of_phase) {
  const auto selected = state_.selection.slice();
  if (!selected) return;
  for (const Coloured& what : coloured_of(document_.run(), *selected)) {
    if (what.phase.has_value() != of_phase) continue;
    auto* menu = new QMenu("Colour of " + what.text(), this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    fill_colour_menu(*menu, what, document_.run());
    const auto box = geometry().box_of(*selected);
    menu->popup(viewport()->mapToGlobal(box ? box->center() : viewport()->rect().center()));
  }
}

bool TimelineWidget::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::Leave) {
    set_pointer(std::nullopt);
    viewport()->update();
  } else if (event->type() == QEvent::ToolTip) {
    show_tooltip(event, *viewport(), [this](const QPoint& position) { return tooltip_at(position); });
    return true;
  }
  return QAbstractScrollArea::viewportEvent(event);
}

QString TimelineWidget::tooltip_at(const QPoint& position) const {
  const Geometry geometry = this->geometry();
  const PlacedRow* placed = geometry.row_at(position);
  if (placed == nullptr) return {};
  if (position.x() < names_width()) return placed->row->header_tooltip(state_.arrangement);
  QString text = placed->row->tooltip(geometry.point_in(*placed, position));
  const auto slice = slice_at(position);
  const qsizetype end = text.lastIndexOf("</table>");
  if (slice && end >= 0) text.insert(end, launch_lines(document_.run(), *slice, links_.partners(*slice)));
  return text;
}

}  // namespace paceline::viewer
