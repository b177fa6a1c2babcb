// SPDX-License-Identifier: Apache-2.0
// Draws a tree of a flame graph: one box for each node, below the box of its parent and as wide as its share of it. A
// difference is red where the first set has the larger share and blue where the other one has.
#pragma once

#include <QWidget>
#include <optional>
#include <vector>

#include "viewer/drawing/palette.h"
#include "viewer/panels/flame_tree.h"

namespace paceline::viewer {

class FlameChart : public QWidget {
  Q_OBJECT

 public:
  explicit FlameChart(const Run& run);

  const FlameTree& tree() const { return tree_; }
  const std::vector<FlameNode>& nodes() const { return tree_.nodes; }
  // Shows the whole tree.
  void show_tree(FlameTree tree);
  // The box of a node that is wide enough to be drawn; nothing for others.
  std::optional<QRect> box_of(std::uint32_t node) const;
  QRgb colour_of(std::uint32_t node, const Theme& theme) const;
  QString text_of(std::uint32_t node) const;
  // The node that takes the whole width.
  std::uint32_t top() const { return top_; }
  void zoom_to(std::uint32_t node);
  void set_cursor(std::uint32_t node);
  // Other nodes than those whose name contains the text are pale. Nodes below one that is found count as part of it.
  // Returns the share of the whole that they have; of a difference, in the first set.
  double highlight(const QString& text);

 Q_SIGNALS:
  void chosen(std::uint32_t node);  // by a click or the return key

 protected:
  bool event(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct Box {
    std::uint32_t node;
    QRect rect;
  };
  void lay_out();
  std::optional<std::uint32_t> at(const QPoint& position) const;
  QString name_of(std::uint32_t node) const;
  QString label_of(std::uint32_t node) const;

  const Run& run_;
  FlameTree tree_;
  std::vector<Box> boxes_;  // from the top to the bottom
  std::uint32_t top_ = 0;
  std::optional<std::uint32_t> cursor_;
  double largest_difference_ = 0;
  std::vector<bool> found_;  // of each node; empty: nothing is searched for
};

}  // namespace paceline::viewer
