// SPDX-License-Identifier: Apache-2.0
#include "viewer/timeline/timeline_widget.h"

#include <QAccessible>
#include <QEvent>
#include <QPaintEngine>
#include <QPainter>
#include <QScrollBar>
#include <algorithm>

#include "viewer/timeline/overlay.h"

namespace paceline::viewer {

TimelineWidget::TimelineWidget(Document& document, ViewState& state, QWidget* parent)
    : QAbstractScrollArea(parent),
      document_(document),
      state_(state),
      rows_(document, state.arrangement),
      links_(document),
      path_(document) {
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
    misplaced_ = misplaced_ || !state_.arrangement.shown_kinds().empty();  // a filtered row knows its height now
    light_up();
    picture_.rows_ready();
    show_rows();
  });
  const auto analysed_or_path = [this] {
    if (state_.arrangement.path_shown()) path_.want();
    redraw();
  };
  connect(&document_, &Document::analysed, this, analysed_or_path);
  connect(&state_.arrangement, &Arrangement::path_changed, this, analysed_or_path);
  connect(&state_.time, &VisibleTime::bookmarks_changed, viewport(), qOverload<>(&QWidget::update));
  connect(&state_.commands, &Commands::partner_wanted, this, &TimelineWidget::go_to_partner);
  connect(&state_.commands, &Commands::row_hiding_wanted, this, [this] {
    const PlacedRow* placed = state_.selection.slice() ? rows_.row_of(*state_.selection.slice()) : nullptr;
    if (placed != nullptr) state_.arrangement.hide_rows(placed->row->name());
  });
  connect(&state_.commands, &Commands::row_pinning_wanted, this, [this] {
    const PlacedRow* placed = state_.selection.slice() ? rows_.row_of(*state_.selection.slice()) : nullptr;
    if (placed == nullptr) return;
    const std::size_t rank = placed->row->rank();
    state_.arrangement.set_row_pinned(rank, placed->row->name(),
                                      !state_.arrangement.row_pinned(rank, placed->row->name()));
  });
  connect(&state_.commands, &Commands::colour_wanted, this, &TimelineWidget::show_colours);
  connect(&state_.time, &VisibleTime::view_changed, this, [this] {
    if (const int width = viewport()->width() - names_width(); state_.time.axis().width() != std::max(width, 1)) {
      return state_.time.set_width(width);  // the column of names has another width, and this comes again
    }
    redraw();
  });
  connect(&state_.arrangement, &Arrangement::filter_changed, this, [this] {
    rows_.set_filter(state_.arrangement.shown_kinds());
    place_rows();
  });
  connect(&state_.selection, &Selection::range_changed, viewport(), qOverload<>(&QWidget::update));
  connect(&state_.arrangement, &Arrangement::folds_changed, this, &TimelineWidget::place_rows);
  connect(&state_.selection, &Selection::revealed, this, &TimelineWidget::scroll_to);
  connect(&state_.selection, &Selection::rank_wanted, this, [this](std::size_t rank) {
    const auto rows = rows_.rows_of(rank);
    const int pinned = geometry().pinned_height();
    if (!rows.empty() && rows.front().y >= pinned) verticalScrollBar()->setValue(rows.front().y - pinned);
  });
  connect(&state_.commands, &Commands::step_wanted, this, &TimelineWidget::step);
  connect(&state_.commands, &Commands::timeline_wanted, this, [this] { setFocus(); });
  connect(&state_.commands, &Commands::page_wanted, this, [this](int pages) {
    const int room = viewport()->height() - ruler_height - geometry().pinned_height(), level = rows_.level_height();
    verticalScrollBar()->setValue(scroll_y() + pages * std::max(level, room - level));
  });
  connect(&state_.selection, &Selection::slices_changed, this, [this] {
    light_up();
    redraw();
    announce_selection();
  });
}

int TimelineWidget::scroll_y() const { return verticalScrollBar()->value(); }

void TimelineWidget::redraw() {
  picture_.invalidate();
  viewport()->update();
}

void TimelineWidget::show_rows() {
  if (state_.arrangement.path_shown()) return redraw();  // its line crosses the rows
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
  const PlacedRow* placed = rows_.row_of(slice);
  const int pinned = geometry().pinned_height();
  if (placed == nullptr || placed->y < pinned) return;
  const int level = rows_.level_height(), top = placed->y + placed->row->place_of(slice, level)->first;
  if (top < pinned + scroll_y()) verticalScrollBar()->setValue(top - pinned - level);
  const int below = top + level - scroll_y() - (viewport()->height() - ruler_height);
  if (below > 0) verticalScrollBar()->setValue(scroll_y() + below + level);
}

Geometry TimelineWidget::geometry() const { return {document_.run(), state_, rows_, viewport()->size(), scroll_y()}; }

std::optional<SliceRef> TimelineWidget::slice_at(const QPoint& position) const {
  const Geometry geometry = this->geometry();
  const PlacedRow* placed = geometry.row_at(position);
  if (position.x() < names_width() || placed == nullptr) return std::nullopt;
  return placed->row->slice_at(geometry.point_in(*placed, position));
}

std::span<const CollectiveIndex::Call> TimelineWidget::lit_collective() const {
  const Insight* insight = document_.insight();
  return lit_ && insight ? insight->collectives.with(*lit_) : std::span<const CollectiveIndex::Call>();
}

void TimelineWidget::light_up() {
  std::optional<SliceRef> lit;
  if (pointer_ && drag_ == Drag::none) {
    lit = slice_at(*pointer_);
    const PlacedRow* placed = geometry().row_at(*pointer_);
    // On the strip of a rank: the collective at this time.
    if (!lit && placed && document_.insight() && column_at(*pointer_) >= 0 && placed->row->is_strip()) {
      const double time = state_.time.axis().time_at(column_at(*pointer_));
      lit = document_.insight()->collectives.at(placed->row->rank(), time, state_.time.axis().ns_per_pixel() / 2);
    }
  }
  if (!lit) lit = state_.selection.slice();
  lit_ = lit;
  partners_ = lit ? links_.partners(*lit) : std::vector<SliceRef>();
}

DrawCounts TimelineWidget::paint_rows(QPainter& painter, const QRect& part) {
  std::optional<analysis::NameId> marked;
  const auto selected = state_.selection.slice();
  if (selected && !selected->mark) marked = kind_of(document_.run(), *selected).name;
  DrawCounts counts = painter_->paint(painter, viewport()->size(), state_, rows_, scroll_y(), marked, part);
  if (state_.arrangement.path_shown()) counts += path_.paint(painter, geometry(), painter_->theme());
  return counts;
}

void TimelineWidget::paintEvent(QPaintEvent*) {
  if (misplaced_) place_rows();
  // Rows that know their height only now move others into view.
  constexpr int most_placings = 8;
  const auto prepare = [&] {
    const bool misplaced = rows_.prepare_between(0, geometry().pinned_height());
    return rows_.prepare_between(scroll_y(), scroll_y() + viewport()->height()) || misplaced;
  };
  for (int i = 0; i < most_placings && prepare(); ++i) place_rows();
  QPainter painter(viewport());
  if (painter.paintEngine()->type() == QPaintEngine::SVG) {
    paint_rows(painter, viewport()->rect());  // not as pixels
    return paint_overlay(painter);
  }
  // Hovering and measuring only draw their overlay over the picture of the rows.
  const QImage& rows = picture_.update(viewport()->size(), devicePixelRatioF(), rows_, scroll_y(), names_width(),
                                       [this](QPainter& scene, const QRect& part) { return paint_rows(scene, part); });
  painter.drawImage(0, 0, rows);
  paint_overlay(painter);
}

void TimelineWidget::paint_overlay(QPainter& painter) {
  const Geometry geometry = this->geometry();
  const QFont font = this->font();
  const QPalette palette = this->palette();
  Overlay overlay{painter, geometry, painter_->theme(), palette, font};
  if (const auto range = state_.selection.range()) overlay.paint_range(*range);
  overlay.paint_bookmarks();
  overlay.paint_collective(lit_collective());
  for (const SliceRef& partner : partners_) overlay.paint_link(*lit_, partner);
  if (pointer_ && column_at(*pointer_) >= 0 && drag_ != Drag::pan) overlay.paint_pointer(*pointer_);
  for (const SliceRef& selected : state_.selection.slices()) overlay.paint_selection(selected);
  const auto target = drag_ == Drag::rank && pointer_ ? rank_at(pointer_->y()) : std::nullopt;
  if (target) overlay.paint_drop(*target, pointer_->y() > pressed_.y());
  if (hasFocus()) painter.fillRect(0, 0, 2, viewport()->height(), palette.highlight());
}

void TimelineWidget::resizeEvent(QResizeEvent*) {
  state_.time.set_width(viewport()->width() - names_width());
  place_rows();
}

void TimelineWidget::changeEvent(QEvent* event) {
  QAbstractScrollArea::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) {
    painter_ = std::make_unique<TimelinePainter>(document_, Theme::of(palette()), font());
    redraw();
  }
}

void TimelineWidget::scrollContentsBy(int, int) { show_rows(); }

void TimelineWidget::announce_selection() {
  QString text = "nothing selected";
  if (const auto selected = state_.selection.slice()) {
    text = slice_text(document_.run(), *selected);
  }
  setAccessibleDescription(text);
  QAccessibleEvent event(this, QAccessible::DescriptionChanged);
  QAccessible::updateAccessibility(&event);
}

}  // namespace paceline::viewer
