// SPDX-License-Identifier: Apache-2.0
#include "viewer/timeline/overlay.h"

#include <QPainterPath>
#include <algorithm>
#include <set>

#include "viewer/drawing/labels.h"
#include "viewer/text/time_text.h"
#include "viewer/timeline/timeline_painter.h"

namespace paceline::viewer {

void Overlay::paint_pointer(const QPoint& pointer) {
  const ViewState& state = geometry.state;
  painter.fillRect(pointer.x(), 0, 1, geometry.size.height(), QColor(theme.crosshair));
  const QString text =
      time_text(geometry.time_at(pointer.x()), state.time.axis().ns_per_pixel(), state.time.axis().visible().end_ns);
  // Beside the ruler, where it hides nothing.
  painter.setFont(with_size(font, 11, true));
  painter.setPen(QColor(theme.text));
  painter.drawText(QRect(12, ruler_height / 2 - 1, state.time.names_width() - 20, ruler_height / 2),
                   Qt::AlignVCenter | Qt::AlignLeft, "at " + text);
}

void Overlay::paint_selection(const SliceRef& slice) {
  const auto box = geometry.box_of(slice);
  if (!box || box->isEmpty()) return;
  painter.save();
  painter.setClipRect(geometry.rows_box());
  painter.setPen(QPen(QColor(theme.selection), 2));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(*box);
  painter.restore();
}

void Overlay::paint_range(const TimeRange& range) {
  painter.save();
  const QRect rows = geometry.rows_box();
  painter.setClipRect(rows.adjusted(0, -ruler_height, 0, 0));
  const int left = geometry.x_of(range.begin_ns), right = geometry.x_of(range.end_ns);
  QColor veil(theme.background);
  veil.setAlpha(140);
  painter.fillRect(QRect(rows.left(), rows.top(), left - rows.left(), rows.height()), veil);
  painter.fillRect(QRect(right, rows.top(), rows.right() + 1 - right, rows.height()), veil);
  const auto& ranks = geometry.state.selection.ranks();
  if (!ranks.empty()) {
    const int pinned = geometry.pinned_height(), bottom = geometry.scroll_y + rows.height();
    for (const auto& in_view :
         {geometry.rows.ranks_between(0, pinned), geometry.rows.ranks_between(geometry.first_scrolled_y(), bottom)}) {
      for (const PlacedRank& placed : in_view) {
        const QRect box(left, geometry.y_of(placed.y), right - left, placed.end_y - placed.y);
        if (!ranks.contains(placed.rank)) {
          painter.fillRect(placed.y < pinned ? box : box & rows.adjusted(0, pinned, 0, 0), veil);
        }
      }
    }
  }
  const QColor edge = palette.color(QPalette::Highlight);
  painter.fillRect(left, 0, 1, geometry.size.height(), edge);
  painter.fillRect(right, 0, 1, geometry.size.height(), edge);
  painter.setFont(with_size(font, 11, true));
  const QString text = length_text(range.length());
  const int text_width = painter.fontMetrics().horizontalAdvance(text) + 14;
  const int least = rows.left() + text_width / 2, most = std::max(least, geometry.size.width() - text_width / 2);
  const int middle = std::clamp((left + right) / 2, least, most);
  const QRect box(middle - text_width / 2, ruler_height - 20, text_width, 19);
  paint_tag(box, text, edge, palette.color(QPalette::HighlightedText));
  painter.fillRect(left, ruler_height - 3, right - left, 3, edge);
  painter.restore();
}

void Overlay::paint_flag(double time_ns, const QString& text, const QColor& colour) {
  const TimeRange view = geometry.state.time.axis().visible();
  if (time_ns < view.begin_ns || time_ns > view.end_ns) return;
  const int x = geometry.x_of(time_ns);
  painter.fillRect(x, 0, 1, geometry.size.height(), colour);
  const int width = text.isEmpty() ? 8 : painter.fontMetrics().horizontalAdvance(text) + 8;
  const QRect flag(x, 0, width, text.isEmpty() ? 9 : 14);
  paint_tag(flag, text, colour, QColor(text_colour_on(colour.rgb())));
}

void Overlay::paint_tag(const QRect& box, const QString& text, const QColor& background, const QColor& colour) {
  const TimeAxis& axis = geometry.state.time.axis();
  for (const RulerTick& tick :
       ruler_ticks(axis, with_size(font, 11), geometry.state.time.names_width(), geometry.size.width())) {
    if (!tick.box.intersects(box)) continue;
    for (const QRect& hidden : QRegion(tick.box) - tags) painter.fillRect(hidden, QColor(theme.ruler));
  }
  tags += box;
  painter.fillRect(box, background);
  painter.setPen(colour);
  painter.drawText(box, Qt::AlignCenter, text);
}

void Overlay::paint_bookmarks() {
  const QColor colour(theme.dark ? 0xffc9a2ec : 0xff6f2da8);
  painter.save();
  painter.setClipRect(geometry.rows_box().adjusted(0, -ruler_height, 0, 0));
  painter.setFont(with_size(font, 11, true));
  for (const Bookmark& one : geometry.state.time.bookmarks()) paint_flag(one.time_ns, one.text, colour);
  if (const auto time = geometry.state.time.marked_time()) {
    const TimeAxis& axis = geometry.state.time.axis();
    paint_flag(*time, time_text(*time, axis.ns_per_pixel(), axis.visible().end_ns), QColor(theme.selection));
  }
  painter.restore();
}

std::optional<QRect> Overlay::box_of(const SliceRef& slice) const {
  const auto& slices = slices_of(geometry.run, slice);
  return geometry.box_on_rank(slice, slices.start_ns[slice.slice], slices.end_ns(slice.slice));
}

void Overlay::frame(const QRect& box) {
  if (box.isEmpty()) return;
  QColor light(theme.selection);
  light.setAlpha(60);
  painter.fillRect(box, light);
  painter.setPen(QColor(theme.selection));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(box.adjusted(0, 0, -1, -1));
}

std::vector<const CollectiveIndex::Call*> Overlay::calls_near_view(std::span<const CollectiveIndex::Call> calls) const {
  std::vector<const CollectiveIndex::Call*> near;
  const auto call_of = [&](std::size_t rank) -> const CollectiveIndex::Call* {
    const auto at = std::ranges::lower_bound(calls, rank, {}, &CollectiveIndex::Call::rank);
    return at != calls.end() && at->rank == rank ? &*at : nullptr;
  };
  const auto on_pinned_row = [&](const CollectiveIndex::Call& call) {
    const PlacedRow* placed = geometry.rows.row_of(call.ref());
    return placed != nullptr && placed->pinned;
  };
  std::set<std::size_t> ranks_with_pinned_rows;
  for (const auto& [rank, name] : geometry.state.arrangement.pinned_rows()) ranks_with_pinned_rows.insert(rank);
  for (const std::size_t rank : ranks_with_pinned_rows) {
    const auto* call = call_of(rank);
    if (call != nullptr && on_pinned_row(*call)) near.push_back(call);
  }
  // Whether the rank has a call among its own rows.
  const auto add = [&](const PlacedRank& placed) {
    const auto* call = call_of(placed.rank);
    if (call == nullptr || (ranks_with_pinned_rows.contains(placed.rank) && on_pinned_row(*call))) return false;
    near.push_back(call);
    return true;
  };
  constexpr int line_width = 4;
  const std::span<const PlacedRank> ranks = geometry.rows.ranks();
  for (const PlacedRank& placed : geometry.rows.ranks_between(0, geometry.pinned_height())) add(placed);
  const int top = geometry.first_scrolled_y(), bottom = geometry.scroll_y + geometry.rows_box().height();
  const auto in_view = geometry.rows.ranks_between(top - line_width, bottom + line_width);
  for (const PlacedRank& placed : in_view) add(placed);
  const auto first = static_cast<std::size_t>(in_view.data() - ranks.data()), end = first + in_view.size();
  for (std::size_t above = first; above > 0 && !add(ranks[above - 1]);) --above;
  for (std::size_t below = end; below < ranks.size() && !add(ranks[below]);) ++below;
  return near;
}

void Overlay::paint_collective(std::span<const CollectiveIndex::Call> calls) {
  if (calls.empty()) return;
  painter.save();
  const QRect rows = geometry.rows_box();
  painter.setClipRect(rows);
  std::vector<QPointF> arrivals;
  for (const CollectiveIndex::Call* call : calls_near_view(calls)) {
    const auto box = geometry.box_on_rank(call->ref(), call->from_ns, call->end_ns);
    if (!box) continue;
    const int middle = box->top() + (box->height() - 1) / 2;  // QRect::center() is rounded up above the window
    arrivals.emplace_back(geometry.x_of(double(call->from_ns)), middle);
    if (box->bottom() >= rows.top() && box->top() <= rows.bottom()) frame(*box);
  }
  std::ranges::sort(arrivals, {}, &QPointF::y);
  painter.setRenderHint(QPainter::Antialiasing, true);
  for (const auto& [colour, width] : {std::pair(theme.background, 4.0), std::pair(theme.selection, 2.0)}) {
    painter.setPen(QPen(QColor(colour), width, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    painter.drawPolyline(arrivals.data(), static_cast<int>(arrivals.size()));
  }
  painter.restore();
}

void Overlay::paint_link(const SliceRef& slice, const SliceRef& partner) {
  const auto one = box_of(slice), other = box_of(partner);
  if (!one || !other) return;
  const auto start_of = [&](const SliceRef& ref) { return slices_of(geometry.run, ref).start_ns[ref.slice]; };
  const bool forward = start_of(slice) <= start_of(partner);
  const QRect from = forward ? *one : *other, to = forward ? *other : *one;
  painter.save();
  painter.setClipRect(geometry.rows_box());
  frame(*other);
  const bool down = to.center().y() >= from.center().y();
  const QPointF begin(from.left() + 1, down ? from.bottom() : from.top());
  const QPointF end(to.left() + 1, down ? to.top() : to.bottom());
  const double bend = (end.y() - begin.y()) / 2;
  QPainterPath arrow(begin);
  arrow.cubicTo(begin + QPointF(0, bend), end - QPointF(0, bend), end);
  const double tip = down ? -6 : 6;
  painter.setRenderHint(QPainter::Antialiasing, true);
  for (const auto& [colour, width] : {std::pair(theme.background, 4.0), std::pair(theme.selection, 1.5)}) {
    painter.setPen(QPen(QColor(colour), width));
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(arrow);
  }
  painter.setBrush(QColor(theme.selection));
  const QPointF head[] = {end, end + QPointF(-4, tip), end + QPointF(4, tip)};
  painter.drawPolygon(head, 3);
  painter.restore();
}

void Overlay::paint_drop(const PlacedRank& target, bool below) {
  const int y = geometry.y_of(below ? target.end_y : target.y);
  painter.fillRect(0, y - 1, geometry.state.time.names_width(), 3, palette.highlight());
}

}  // namespace paceline::viewer
