// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/flame_graph.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <unordered_map>

#include "viewer/drawing/labels.h"
#include "viewer/drawing/palette.h"
#include "viewer/panels/table_panel.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace flame_graph {

constexpr int title_height = 26, row_height = 18;

const char* group_of(const analysis::Track& track) {
  switch (track.kind) {
    case analysis::TrackKind::thread:
      return track.main ? "main threads" : "other threads";
    case analysis::TrackKind::stream:
      return "GPU streams";
    case analysis::TrackKind::nccl:
      return "NCCL";
    case analysis::TrackKind::copy:
      return "copies";
    case analysis::TrackKind::mpi:
      return "MPI";
    case analysis::TrackKind::counter:
      break;
  }
  return "";
}

// Adds the slices of one track after the other.
class Builder {
 public:
  Builder(const Run& run, const Part& part) : run_(run), part_(part), nodes_(1) {}

  void add(std::size_t rank, std::size_t track_index) {
    const analysis::Track& track = run_.trace.ranks[rank].tracks[track_index];
    const analysis::Slices& slices = track.slices;
    auto [begin, end] = slices_in(part_, slices);
    // The slices that had begun before the range and reach into it stand around the first one in it.
    while (begin > 0 && (begin == slices.size() || slices.depth[begin] > 0)) --begin;
    std::vector<std::uint32_t> open{group(group_of(track))};
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t depth = slices.depth[i];
      open.resize(std::min(open.size(), depth + 1));
      const std::uint32_t node = child(open.back(), run_.trace.kind_of(slices, i).name);
      open.push_back(node);
      const std::int64_t inside = clipped(slices.start_ns[i], slices.end_ns(i));
      if (inside < 0) continue;
      FlameNode& sum = nodes_[node];
      sum.total_ns += inside;
      ++sum.count;
      if (slices.duration_ns[i] > sum.longest_ns) {
        sum.longest_ns = slices.duration_ns[i];
        sum.longest = {.rank = rank, .track = track_index, .slice = std::uint32_t(i)};
      }
    }
  }

  std::vector<FlameNode> finish() {
    for (const std::uint32_t group : nodes_[0].children) {
      for (const std::uint32_t node : nodes_[group].children) nodes_[group].total_ns += nodes_[node].total_ns;
      nodes_[0].total_ns += nodes_[group].total_ns;
    }
    for (FlameNode& node : nodes_) {
      std::ranges::stable_sort(node.children, std::greater(), [&](std::uint32_t one) { return nodes_[one].total_ns; });
    }
    return std::move(nodes_);
  }

 private:
  // How much of a slice is within the range; -1 if it does not touch it.
  std::int64_t clipped(std::int64_t start, std::int64_t end) const {
    if (!part_.range) return end - start;
    const auto from = std::int64_t(part_.range->begin_ns), to = std::int64_t(part_.range->end_ns);
    return start >= to || end < from ? -1 : std::min(end, to) - std::max(start, from);
  }
  std::uint32_t group(const char* name) {
    for (const std::uint32_t one : nodes_[0].children) {
      if (nodes_[one].group == name) return one;
    }
    const std::uint32_t made = add_node(0);
    nodes_[made].group = name;
    return made;
  }
  std::uint32_t child(std::uint32_t parent, analysis::NameId name) {
    const auto [found, fresh] = known_.try_emplace(std::uint64_t{parent} << 32 | name, 0);
    if (fresh) {
      found->second = add_node(parent);
      nodes_[found->second].name = name;
    }
    return found->second;
  }
  std::uint32_t add_node(std::uint32_t parent) {
    const auto made = std::uint32_t(nodes_.size());
    nodes_.emplace_back().parent = parent;
    nodes_[parent].children.push_back(made);
    return made;
  }

  const Run& run_;
  const Part& part_;
  std::vector<FlameNode> nodes_;
  std::unordered_map<std::uint64_t, std::uint32_t> known_;  // by parent and name
};

}  // namespace flame_graph

std::vector<FlameNode> flame_nodes(const Run& run, const Part& part, const Ticket& ticket) {
  flame_graph::Builder builder(run, part);
  for (std::size_t rank = 0; rank < run.trace.ranks.size(); ++rank) {
    if (!part.on(rank)) continue;
    const auto& tracks = run.trace.ranks[rank].tracks;
    for (std::size_t track = 0; track < tracks.size() && !ticket.cancelled(); ++track) {
      if (tracks[track].slices.size() > 0) builder.add(rank, track);
    }
  }
  return builder.finish();
}

FlameGraph::FlameGraph(Document& document, ViewState& state) : LazyPanel(document, state) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName("Flame graph");
  setMinimumSize(200, 80);
  connect(&state, &ViewState::range_changed, this, [this] { set_stale(); });
}

void FlameGraph::refresh() {
  task_.start([run = document_.shared_run(),
               part = selected_part()](const Ticket& ticket) { return flame_nodes(*run, part, ticket); },
              [this, part = selected_part()](std::vector<FlameNode> made) {
                nodes_ = std::move(made);
                top_ = 0;
                cursor_.reset();
                status_ = nodes_[0].total_ns == 0
                              ? QString("No slices %1").arg(part_text(part))
                              : QString(
                                    "Time by what is inside what, %1, all threads and streams added up. A click "
                                    "goes to the longest slice; a double click enlarges, Backspace goes back.")
                                    .arg(part_text(part));
                update();
              });
}

std::vector<FlameGraph::Box> FlameGraph::boxes() const {
  using namespace flame_graph;
  std::vector<Box> boxes;
  if (nodes_.empty() || nodes_[top_].total_ns <= 0) return boxes;
  boxes.push_back({top_, QRect(0, title_height, width(), top_ == 0 ? 0 : row_height)});
  // Boxes below half a pixel are left out, so there are at most as many as pixels on each level.
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const Box box = boxes[i];
    const FlameNode& node = nodes_[box.node];
    const int y = box.rect.top() + box.rect.height();
    if (y >= height() || node.total_ns <= 0) continue;
    double x = box.rect.left();
    for (const std::uint32_t child : node.children) {
      const double wide = double(box.rect.width()) * double(nodes_[child].total_ns) / double(node.total_ns);
      if (wide < 0.5) break;  // the following ones are narrower
      const int left = int(x + 0.5), right = int(x + wide + 0.5);
      x += wide;
      if (right > left) boxes.push_back({child, QRect(left, y, right - left, row_height)});
    }
  }
  return boxes;
}

std::optional<QRect> FlameGraph::box_of(std::uint32_t node) const {
  for (const Box& box : boxes()) {
    if (box.node == node) return box.rect;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> FlameGraph::at(const QPoint& position) const {
  for (const Box& box : boxes()) {
    if (box.rect.contains(position)) return box.node;
  }
  return std::nullopt;
}

QString FlameGraph::name_of(std::uint32_t node) const {
  return nodes_[node].group.isEmpty() ? shown_name(document_.run().trace.names[nodes_[node].name]) : nodes_[node].group;
}

QString FlameGraph::text_of(std::uint32_t node) const {
  const FlameNode& one = nodes_[node];
  QString text = QString("%1: %2, %3 of all")
                     .arg(name_of(node), duration_text(one.total_ns),
                          share_text(double(one.total_ns) / double(std::max<std::int64_t>(nodes_[0].total_ns, 1))));
  if (one.count > 0) text += ", " + plural_text(one.count, "slice", "slices");
  return text;
}

bool FlameGraph::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return LazyPanel::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  if (const auto node = at(help->pos())) {
    QToolTip::showText(help->globalPos(), text_of(*node), this);
  } else {
    QToolTip::hideText();
  }
  return true;
}

// As on the timeline.
QRgb FlameGraph::colour_of(const FlameNode& node, const Theme& theme) const {
  if (node.count == 0) return theme.container;
  const analysis::KindId kind = slices_of(document_.run(), node.longest).kind[node.longest.slice];
  return kind_colour(document_.run().trace, document_.run().index->phases(), kind, theme);
}

void FlameGraph::paintEvent(QPaintEvent*) {
  const Theme theme = Theme::of(palette());
  QPainter painter(this);
  painter.fillRect(rect(), QColor(theme.background));
  painter.setFont(with_size(font(), 11));
  painter.setPen(QColor(theme.faint_text));
  painter.drawText(QRect(12, 0, width() - 24, flame_graph::title_height), Qt::AlignVCenter | Qt::AlignLeft,
                   painter.fontMetrics().elidedText(status_, Qt::ElideRight, width() - 24));
  for (const Box& box : boxes()) {
    if (box.node == 0) continue;
    const FlameNode& node = nodes_[box.node];
    const QRgb colour = colour_of(node, theme);
    const QRect inside = box.rect.adjusted(0, 0, box.rect.width() > 2 ? -1 : 0, -1);
    painter.fillRect(inside, QColor(colour));
    paint_label(painter, inside, name_of(box.node) + "   " + duration_text(node.total_ns), colour);
    if (cursor_ == box.node && hasFocus()) {
      painter.setPen(QPen(QColor(theme.selection), 2));
      painter.drawRect(inside);
    }
  }
}

void FlameGraph::zoom_to(std::uint32_t node) {
  top_ = node;
  update();
}

void FlameGraph::set_cursor(std::uint32_t node) {
  cursor_ = node;
  setAccessibleDescription(text_of(node));
  update();
}

void FlameGraph::go_to(std::uint32_t node) {
  set_cursor(node);
  if (nodes_[node].count > 0) state_.go_to({.slice = nodes_[node].longest});
}

void FlameGraph::mousePressEvent(QMouseEvent* event) {
  if (const auto node = at(event->position().toPoint())) go_to(*node);
}

void FlameGraph::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const auto node = at(event->position().toPoint())) zoom_to(*node == top_ ? nodes_[top_].parent : *node);
}

void FlameGraph::keyPressEvent(QKeyEvent* event) {
  if (nodes_.empty()) return LazyPanel::keyPressEvent(event);
  const std::uint32_t node = cursor_.value_or(0);
  const auto& around = nodes_[nodes_[node].parent].children;
  const auto place = std::ranges::find(around, node);
  switch (event->key()) {
    case Qt::Key_Up:
      return set_cursor(nodes_[node].parent);
    case Qt::Key_Down:
      if (!nodes_[node].children.empty()) set_cursor(nodes_[node].children.front());
      return;
    case Qt::Key_Left:
      if (place != around.end() && place != around.begin()) set_cursor(*(place - 1));
      return;
    case Qt::Key_Right:
      if (place != around.end() && place + 1 != around.end()) set_cursor(*(place + 1));
      return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      return go_to(node);
    case Qt::Key_Plus:
      return zoom_to(node);
    case Qt::Key_Minus:
    case Qt::Key_Backspace:
      return zoom_to(nodes_[top_].parent);
    default:
      LazyPanel::keyPressEvent(event);
  }
}

}  // namespace paceline::viewer
