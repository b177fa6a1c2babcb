// SPDX-License-Identifier: Apache-2.0
// Where the time of the selected range went, by what was inside what: slices of the same name below the same names are
// added up over all ranks and drawn as one box, as wide as their time. A click goes to the longest slice of a box; a
// double click shows the box over the whole width.
#pragma once

#include <optional>
#include <vector>

#include "viewer/drawing/palette.h"
#include "viewer/panels/lazy_panel.h"

namespace paceline::viewer {

struct FlameNode {
  QString group;                 // of the top level: "main threads", "streams"
  analysis::NameId name = 0;     // of the others
  std::uint32_t parent = 0;      // index of a node; the root is its own
  std::int64_t total_ns = 0;     // within the range
  std::uint64_t count = 0;       // slices
  std::int64_t longest_ns = -1;  // of the whole slice
  SliceRef longest;
  std::vector<std::uint32_t> children;  // the largest total first
};

// The root is the first node. Cost: linear in the slices of the part.
std::vector<FlameNode> flame_nodes(const Run& run, const Part& part, const Ticket& ticket);

class FlameGraph : public LazyPanel {
  Q_OBJECT

 public:
  FlameGraph(Document& document, ViewState& state);

  const std::vector<FlameNode>& nodes() const { return nodes_; }
  // The box of a node that is wide enough to be drawn; nothing for others.
  std::optional<QRect> box_of(std::uint32_t node) const;
  void zoom_to(std::uint32_t node);

 protected:
  void refresh() override;
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct Box {
    std::uint32_t node;
    QRect rect;
  };
  std::vector<Box> boxes() const;  // from the top to the bottom
  std::optional<std::uint32_t> at(const QPoint& position) const;
  QRgb colour_of(const FlameNode& node, const Theme& theme) const;
  QString name_of(std::uint32_t node) const;
  QString text_of(std::uint32_t node) const;
  void set_cursor(std::uint32_t node);
  void go_to(std::uint32_t node);

  std::vector<FlameNode> nodes_;
  std::uint32_t top_ = 0;  // the node that takes the whole width
  std::optional<std::uint32_t> cursor_;
  QString status_ = "computing…";
};

}  // namespace paceline::viewer
