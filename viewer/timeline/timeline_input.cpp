// What the mouse, the wheel and the keys do to the timeline. The list for users is in window/shortcuts.cpp.
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
#include "viewer/timeline/timeline_widget.h"

namespace paceline::viewer {
namespace {

constexpr double key_zoom = 1.5, pan_share = 0.15;

}  // namespace

void TimelineWidget::wheelEvent(QWheelEvent* event) {
  const QPoint turned = event->angleDelta();
  const double steps = (turned.y() != 0 ? turned.y() : turned.x()) / 120.0;
  const QPointF at = event->position();
  const auto modifiers = event->modifiers();
  if (modifiers & Qt::ShiftModifier || (turned.y() == 0 && !(modifiers & Qt::AltModifier))) {
    pan(-steps * pan_share * axis_.width());
  } else if (modifiers & Qt::AltModifier || at.x() < header_width) {
    verticalScrollBar()->setValue(scroll_y() - static_cast<int>(std::lround(steps * 3 * rows_.depth_height())));
  } else {
    // Ctrl for fine steps.
    zoom(at.x() - header_width, std::pow(modifiers & Qt::ControlModifier ? 1.1 : 1.35, -steps));
  }
  event->accept();
}

void TimelineWidget::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton) return;
  pressed_ = dragged_ = event->position().toPoint();
  drag_ = Drag::undecided;
  if (event->modifiers() & Qt::ShiftModifier && pressed_.x() >= header_width) {
    drag_ = Drag::range;
    range_anchor_ns_ = axis_.time_at(column_at(pressed_));
  }
}

void TimelineWidget::mouseMoveEvent(QMouseEvent* event) {
  const QPoint position = event->position().toPoint();
  pointer_ = position;
  if (drag_ == Drag::undecided && (position - pressed_).manhattanLength() >= QApplication::startDragDistance() &&
      pressed_.x() >= header_width) {
    drag_ = Drag::pan;
    viewport()->setCursor(Qt::ClosedHandCursor);
  }
  if (drag_ == Drag::pan) {
    const QPoint moved = position - dragged_;
    dragged_ = position;
    verticalScrollBar()->setValue(scroll_y() - moved.y());
    pan(-moved.x());
  } else if (drag_ == Drag::range) {
    const double time = std::clamp(axis_.time_at(column_at(position)), axis_.whole().begin_ns, axis_.whole().end_ns);
    select_range(TimeRange{std::min(range_anchor_ns_, time), std::max(range_anchor_ns_, time)});
  }
  viewport()->update();
}

void TimelineWidget::mouseReleaseEvent(QMouseEvent* event) {
  const Drag drag = drag_;
  drag_ = Drag::none;
  viewport()->setCursor(Qt::ArrowCursor);
  const QPoint position = event->position().toPoint();
  if (drag == Drag::range && selected_range_ && selected_range_->length() < 2 * axis_.ns_per_pixel()) {
    select_range(std::nullopt);
  }
  if (drag != Drag::undecided) return;
  // A click.
  if (position.x() < header_width) {
    const auto hit = rows_.at(position.y() - ruler_height + scroll_y());
    if (position.y() < ruler_height || !hit) return;
    if (hit->track) {
      if (!rows_.rows_of(hit->rank, *hit->track)->folds) return;
      rows_.set_counters_unfolded(hit->rank, !rows_.counters_unfolded(hit->rank));
    } else {
      rows_.set_collapsed(hit->rank, !rows_.collapsed(hit->rank));
    }
    update_scroll_bar();
    redraw();
    return;
  }
  const auto slice = slice_at(position);
  if (!slice) select_range(std::nullopt);
  select(slice);
}

void TimelineWidget::mouseDoubleClickEvent(QMouseEvent* event) {
  const QPoint position = event->position().toPoint();
  if (const auto slice = slice_at(position)) {
    zoom_to(*slice);
    return;
  }
  // On the strip of phases: to the interval.
  const auto hit = rows_.at(position.y() - ruler_height + scroll_y());
  if (position.x() < header_width || position.y() < ruler_height || !hit || !hit->strip) return;
  const RankIndex& rank = run_->ranks[hit->rank];
  const auto at = rank.totals.interval_at(static_cast<std::int64_t>(axis_.time_at(column_at(position))));
  if (at >= rank.phases.intervals.size()) return;
  const auto& interval = rank.phases.intervals[at];
  const auto begin = static_cast<double>(interval.start_ns), end = static_cast<double>(interval.end_ns);
  jump_to({begin - (end - begin) / 4, end + (end - begin) / 4});
}

void TimelineWidget::keyPressEvent(QKeyEvent* event) {
  const int page = std::max(rows_.depth_height(), viewport()->height() - ruler_height - rows_.depth_height());
  QScrollBar* bar = verticalScrollBar();
  switch (event->key()) {
    case Qt::Key_W:
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      zoom_at_pointer(1 / key_zoom);
      break;
    case Qt::Key_S:
    case Qt::Key_Minus:
      zoom_at_pointer(key_zoom);
      break;
    case Qt::Key_A:
      pan(-pan_share * axis_.width());
      break;
    case Qt::Key_D:
      pan(pan_share * axis_.width());
      break;
    case Qt::Key_F:
      show_all();
      break;
    case Qt::Key_Z:
      zoom_to_selection();
      break;
    case Qt::Key_Backspace:
      show_previous();
      break;
    case Qt::Key_BracketLeft:
      jump_to_iteration(-1);
      break;
    case Qt::Key_BracketRight:
      jump_to_iteration(1);
      break;
    case Qt::Key_Home:
      show_part({axis_.whole().begin_ns, axis_.whole().begin_ns + axis_.visible().length()});
      break;
    case Qt::Key_End:
      show_part({axis_.whole().end_ns - axis_.visible().length(), axis_.whole().end_ns});
      break;
    case Qt::Key_PageUp:
      bar->setValue(bar->value() - page);
      break;
    case Qt::Key_PageDown:
      bar->setValue(bar->value() + page);
      break;
    case Qt::Key_Left:
    case Qt::Key_Right:
    case Qt::Key_Up:
    case Qt::Key_Down:
      move_selection(event->key());
      break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (selected_) zoom_to(*selected_);
      break;
    case Qt::Key_Escape:
      select(std::nullopt);
      select_range(std::nullopt);
      break;
    default:
      QAbstractScrollArea::keyPressEvent(event);
  }
}

// Left and right: neighbours of the same track and level. Up and down: the slice around, the first one inside. With
// nothing selected: the outermost slice in the middle of the first track.
void TimelineWidget::move_selection(int key) {
  if (!selected_ || selected_->mark) {
    for (const RankRows& rank : rows_.ranks()) {
      for (const TrackRows& track : rank.tracks) {
        const auto& slices = run_->trace.ranks[rank.rank].tracks[track.track].slices;
        const auto& index = run_->ranks[rank.rank].slices[track.track];
        const double middle = axis_.time_at(axis_.width() / 2.0);
        if (const auto slice = index.slice_at(slices, 0, middle, axis_.visible().length() / 2)) {
          reveal({rank.rank, track.track, *slice, false});
          return;
        }
      }
    }
    return;
  }
  SliceRef to = *selected_;
  const auto& slices = slices_of(*run_, to);
  const auto& index = run_->ranks[to.rank].slices[to.track];
  const unsigned depth = slices.depth[to.slice];
  const std::int64_t start = slices.start_ns[to.slice];
  if (key == Qt::Key_Left || key == Qt::Key_Right) {
    const std::size_t at = index.position(depth, to.slice);
    if (key == Qt::Key_Left ? at == 0 : at + 1 >= index.count(depth)) return;
    to.slice = index.slice(depth, key == Qt::Key_Left ? at - 1 : at + 1);
  } else if (key == Qt::Key_Up) {
    if (depth == 0) return;
    const auto around = index.slice_at(slices, depth - 1, static_cast<double>(start), 0);
    if (!around) return;
    to.slice = *around;
  } else {
    const std::size_t at = index.position(depth + 1, to.slice);
    if (at >= index.count(depth + 1)) return;
    const std::uint32_t inner = index.slice(depth + 1, at);
    if (slices.start_ns[inner] >= slices.end_ns(to.slice)) return;
    to.slice = inner;
  }
  reveal(to);
}

bool TimelineWidget::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::Leave) {
    pointer_.reset();
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

QString TimelineWidget::value_at(const QPoint& position) const {
  const auto hit = rows_.at(position.y() - ruler_height + scroll_y());
  if (position.y() < ruler_height || position.x() < header_width || !hit || !hit->track) return {};
  const CounterGraph& graph = run_->ranks[hit->rank].graphs[*hit->track];
  const double begin = axis_.time_at(column_at(position));
  const auto range = graph.between(begin, begin + axis_.ns_per_pixel());
  if (!range) return {};
  const auto text = [&](double value) { return QString::fromStdString(analysis::quantity(value, graph.curve.unit)); };
  const QString low = text(range->low), high = text(range->high);
  return low == high ? high : low + " to " + high;
}

QString TimelineWidget::tooltip_at(const QPoint& position) const {
  const auto& trace = run_->trace;
  const auto line = [](const QString& key, const QString& value) {
    return QString("<tr><td style='padding-right:8px'>%1</td><td>%2</td></tr>").arg(key, value.toHtmlEscaped());
  };
  if (const auto ref = slice_at(position)) {
    const auto& track = trace.ranks[ref->rank].tracks[ref->track];
    const auto& slices = slices_of(*run_, *ref);
    QString text = QString("<b>%1</b><table>").arg(slice_title(*run_, track, slices, ref->slice).toHtmlEscaped());
    if (!ref->mark) text += line("duration", duration_text(slices.duration_ns[ref->slice]));
    text += line("start", time_text(double(slices.start_ns[ref->slice]), axis_.ns_per_pixel(), axis_.visible().end_ns));
    const auto& kind = trace.kind_of(slices, ref->slice);
    const auto& category = trace.names[kind.category];
    const auto& domain = trace.names[kind.domain];
    if (!category.empty()) text += line("category", QString::fromStdString(category));
    if (!domain.empty()) text += line("domain", QString::fromStdString(domain));
    slices.each_argument(ref->slice, [&](const analysis::Argument& argument) {
      text += line(QString::fromStdString(trace.names[argument.key]).toHtmlEscaped(),
                   argument.is_text() ? QString::fromStdString(trace.names[argument.text()])
                                      : QString::fromStdString(analysis::number_text(argument)));
    });
    return text + "</table>";
  }
  const auto hit = rows_.at(position.y() - ruler_height + scroll_y());
  if (position.y() < ruler_height || !hit) return {};
  const auto& rank = trace.ranks[hit->rank];
  if (const QString value = value_at(position); !value.isEmpty()) {
    const double time = axis_.time_at(column_at(position));
    return QString("<b>%1</b><table>").arg(QString::fromStdString(rank.tracks[*hit->track].label).toHtmlEscaped()) +
           line("value", value) + line("time", time_text(time, axis_.ns_per_pixel(), axis_.visible().end_ns)) +
           "</table>";
  }
  if (position.x() < header_width) {
    return QString("<b>Rank %1 of %2</b><table>").arg(rank.rank).arg(rank.world_size) +
           line("host", QString::fromStdString(rank.host)) + line("process", QString::number(rank.pid)) +
           line("clock",
                QString("%1, error at most %2")
                    .arg(QString::fromStdString(rank.clock_source), duration_text(std::llround(rank.clock_error_ns)))) +
           "</table>";
  }
  if (!hit->strip) return {};
  const RankIndex& index = run_->ranks[hit->rank];
  const auto time = static_cast<std::int64_t>(axis_.time_at(column_at(position)));
  for (const analysis::Gap& gap : rank.gaps) {
    if (time < gap.start_ns || time >= gap.end_ns) continue;
    return QString("<b>%1</b><table>").arg(QString::fromStdString(gap.reason).toHtmlEscaped()) +
           line("duration", duration_text(gap.end_ns - gap.start_ns)) + "</table>";
  }
  const auto at = index.totals.interval_at(time);
  if (at >= index.phases.intervals.size()) return {};
  const auto& interval = index.phases.intervals[at];
  const std::string_view name = analysis::phase_name(interval.phase);
  return QString("<b>%1</b><table>").arg(QString::fromUtf8(name.data(), qsizetype(name.size()))) +
         line("duration", duration_text(interval.end_ns - interval.start_ns)) + "</table>";
}

}  // namespace paceline::viewer
