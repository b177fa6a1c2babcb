// SPDX-License-Identifier: Apache-2.0
// The picture of the rows, kept from frame to frame. After scrolling, its pixels are moved and only what came in is
// painted; where nothing changed, nothing is. On a screen with another ratio of pixels than 1, scrolling paints all
// rows.
#pragma once

#include <QImage>
#include <QPainter>
#include <QRect>
#include <functional>
#include <utility>
#include <vector>

#include "viewer/timeline/row_layout.h"

namespace paceline::viewer {

class RowsPicture {
 public:
  // Paints this part of the picture, and nothing outside of it.
  using Paint = std::function<DrawCounts(QPainter&, const QRect& part)>;

  // Everything is to be painted again.
  void invalidate() { stale_ = true; }
  // Rows that were drawn while their index was being computed are to be painted again.
  void rows_ready() { rows_ready_ = true; }

  // The picture in logical pixels of this size and ratio, of rows that are scrolled up by scroll_y. Whatever else it
  // depends on has not changed since the last call of invalidate().
  const QImage& update(const QSize& size, qreal ratio, const RowLayout& rows, int scroll_y, int names_width,
                       const Paint& paint);

  // What the last painting of any part took.
  DrawCounts counts() const { return counts_; }

 private:
  std::vector<QRect> parts_to_paint(int scroll_y, int names_width, int pinned);
  void move(int pixels, int top);  // the rows below `top`, down

  QImage picture_;
  QSize size_;
  int scroll_y_ = 0;
  bool stale_ = true, rows_ready_ = false;
  std::vector<std::pair<int, int>> incomplete_;  // top and bottom of rows that were drawn without their index
  DrawCounts counts_;
};

}  // namespace paceline::viewer
