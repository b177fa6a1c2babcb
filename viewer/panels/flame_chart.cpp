// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/flame_chart.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "analysis/trace/stack_frames.h"
#include "viewer/drawing/labels.h"
#include "viewer/drawing/state_strip.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace flame_chart {

constexpr int row_height = 18;
// Narrower nodes do not count for the height, which should not depend on the width of the window.
constexpr double least_share = 0.001;
constexpr QRgb red = 0xffd32f2f, blue = 0xff1e6fd0;

QString points_text(double difference) { return QString::number(100 * std::abs(difference), 'f', 1) + " points"; }

}  // namespace flame_chart

FlameChart::FlameChart(const Run& run) : run_(run) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName("Flame graph");
}

void FlameChart::show_tree(FlameTree tree) {
  tree_ = std::move(tree);
  top_ = 0;
  cursor_.reset();
  found_.clear();
  largest_difference_ = 0;
  for (std::uint32_t node = 1; node < nodes().size(); ++node) {
    largest_difference_ = std::max(largest_difference_, std::abs(tree_.difference(node)));
  }
  lay_out();
}

// Boxes below half a pixel are left out, so there are at most as many as pixels on each level.
void FlameChart::lay_out() {
  using flame_chart::row_height;
  boxes_.clear();
  update();
  if (nodes()[top_].width <= 0) return setMinimumHeight(row_height);
  boxes_.push_back({top_, QRect(0, 0, width(), top_ == 0 ? 0 : row_height)});
  int bottom = 0;
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    const Box box = boxes_[i];
    const FlameNode& node = nodes()[box.node];
    const int y = box.rect.top() + box.rect.height();
    if (node.width >= flame_chart::least_share * nodes()[top_].width) bottom = std::max(bottom, y);
    double x = box.rect.left();
    for (const std::uint32_t child : node.children) {
      const double wide = node.width > 0 ? double(box.rect.width()) * nodes()[child].width / node.width : 0;
      if (wide < 0.5) break;  // the following ones are narrower
      const int left = int(x + 0.5), right = int(x + wide + 0.5);
      x += wide;
      if (right > left) boxes_.push_back({child, QRect(left, y, right - left, row_height)});
    }
  }
  setMinimumHeight(bottom);
}

std::optional<QRect> FlameChart::box_of(std::uint32_t node) const {
  const auto found = std::ranges::find(boxes_, node, &Box::node);
  return found == boxes_.end() ? std::nullopt : std::optional(found->rect);
}

std::optional<std::uint32_t> FlameChart::at(const QPoint& position) const {
  const auto found = std::ranges::find_if(boxes_, [&](const Box& box) { return box.rect.contains(position); });
  return found == boxes_.end() ? std::nullopt : std::optional(found->node);
}

QString FlameChart::name_of(std::uint32_t at) const {
  const FlameNode& node = nodes()[at];
  if (at == 0) return "everything";
  return node.group.isEmpty() ? shown_name(run_.trace.names[node.name]) : node.group;
}

QString FlameChart::label_of(std::uint32_t at) const {
  switch (tree_.of) {
    case FlameTree::Of::ranges:
      return name_of(at) + "   " + duration_text(nodes()[at].total_ns);
    case FlameTree::Of::samples:
      return name_of(at) + "   " + share_text(tree_.share(at));
    case FlameTree::Of::difference:
      return QString("%1   %2 / %3").arg(name_of(at), share_text(tree_.share(at)), share_text(tree_.other_share(at)));
  }
  return {};
}

QString FlameChart::text_of(std::uint32_t at) const {
  const FlameNode& node = nodes()[at];
  QString name = name_of(at);
  if (node.file != 0) name += QString(" (%1)").arg(shown_name(run_.trace.names[node.file]));
  const QString share = share_text(tree_.share(at));
  if (tree_.of == FlameTree::Of::difference) {
    const double difference = tree_.difference(at);
    return QString("%1: %2 of %3, %4 of %5, %6 %7")
        .arg(name, share, tree_.one, share_text(tree_.other_share(at)), tree_.other,
             flame_chart::points_text(difference), difference < 0 ? "less" : "more");
  }
  QString text = QString("%1: %2, %3 of all").arg(name, duration_text(node.total_ns), share);
  if (tree_.of == FlameTree::Of::samples) {
    return text +
           QString(", %1, itself %2").arg(plural_text(node.count, "sample", "samples"), duration_text(node.self_ns));
  }
  return node.count > 0 ? text + ", " + plural_text(node.count, "slice", "slices") : text;
}

// Ranges as on the timeline; functions by their names, and system calls as the state in which they leave a thread.
QRgb FlameChart::colour_of(std::uint32_t at, const Theme& theme) const {
  const FlameNode& node = nodes()[at];
  if (tree_.of == FlameTree::Of::difference) {
    const double difference = tree_.difference(at);
    const double strength = largest_difference_ > 0 ? std::sqrt(std::abs(difference) / largest_difference_) : 0;
    return blend(difference > 0 ? flame_chart::red : flame_chart::blue, theme.container,
                 int(std::lround(100 * strength)));
  }
  if (!node.group.isEmpty() || at == 0) return theme.container;
  if (tree_.of == FlameTree::Of::samples) {
    const std::string& name = run_.trace.names[node.name];
    if (!analysis::system_call(name).empty()) return state_colour(analysis::ThreadState::blocked, theme);
    return name_colour(name, theme);
  }
  const analysis::KindId kind = slices_of(run_, node.longest).kind[node.longest.slice];
  return kind_colour(run_.trace, run_.index->phases(), kind, theme);
}

bool FlameChart::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  show_tooltip(event, *this, [this](const QPoint& position) {
    const auto node = at(position);
    return node ? text_of(*node) : QString();
  });
  return true;
}

void FlameChart::resizeEvent(QResizeEvent*) { lay_out(); }

void FlameChart::paintEvent(QPaintEvent* event) {
  const Theme theme = Theme::of(palette());
  QPainter painter(this);
  painter.fillRect(rect(), QColor(theme.background));
  painter.setFont(with_size(font(), 11));
  for (const Box& box : boxes_) {
    if (box.node == 0 || !box.rect.intersects(event->rect())) continue;
    QRgb colour = colour_of(box.node, theme);
    if (!found_.empty() && !found_[box.node]) colour = blend(colour, theme.background, 25);
    const QRect inside = box.rect.adjusted(0, 0, box.rect.width() > 2 ? -1 : 0, -1);
    painter.fillRect(inside, QColor(colour));
    // A number that would be cut is left out; the tooltip has it.
    QString label = label_of(box.node);
    if (painter.fontMetrics().horizontalAdvance(label) + 10 > inside.width()) label = name_of(box.node);
    paint_label(painter, inside, label, colour);
    if (cursor_ == box.node && hasFocus()) {
      painter.setPen(QPen(QColor(theme.selection), 2));
      painter.drawRect(inside);
    }
  }
}

void FlameChart::zoom_to(std::uint32_t node) {
  top_ = node;
  lay_out();
}

void FlameChart::set_cursor(std::uint32_t node) {
  cursor_ = node;
  setAccessibleDescription(text_of(node));
  update();
}

double FlameChart::highlight(const QString& text) {
  found_.clear();
  update();
  if (text.isEmpty()) return 0;
  found_.resize(nodes().size());
  double share = 0;
  for (std::uint32_t node = 1; node < nodes().size(); ++node) {  // parents come before their children
    const bool inside = found_[nodes()[node].parent];
    found_[node] = inside || name_of(node).contains(text, Qt::CaseInsensitive);
    if (found_[node] && !inside) share += tree_.share(node);
  }
  return share;
}

void FlameChart::mousePressEvent(QMouseEvent* event) {
  const auto node = at(event->position().toPoint());
  if (!node) return;
  set_cursor(*node);
  Q_EMIT chosen(*node);
}

// The first of its clicks has already enlarged a box of samples.
void FlameChart::mouseDoubleClickEvent(QMouseEvent* event) {
  const auto node = at(event->position().toPoint());
  if (node && tree_.of == FlameTree::Of::ranges) zoom_to(*node == top_ ? nodes()[top_].parent : *node);
}

void FlameChart::keyPressEvent(QKeyEvent* event) {
  const std::uint32_t node = cursor_.value_or(0);
  const auto& around = nodes()[nodes()[node].parent].children;
  const auto place = std::ranges::find(around, node);
  switch (event->key()) {
    case Qt::Key_Up:
      return set_cursor(nodes()[node].parent);
    case Qt::Key_Down:
      if (!nodes()[node].children.empty()) set_cursor(nodes()[node].children.front());
      return;
    case Qt::Key_Left:
      if (place != around.end() && place != around.begin()) set_cursor(*(place - 1));
      return;
    case Qt::Key_Right:
      if (place != around.end() && place + 1 != around.end()) set_cursor(*(place + 1));
      return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      return Q_EMIT chosen(node);
    case Qt::Key_Plus:
      return zoom_to(node);
    case Qt::Key_Minus:
    case Qt::Key_Backspace:
      return zoom_to(nodes()[top_].parent);
    default:
      QWidget::keyPressEvent(event);
  }
}

}  // namespace paceline::viewer
