// SPDX-License-Identifier: Apache-2.0
#include "viewer/timeline/rows_picture.h"

#include <cstdlib>
#include <cstring>

namespace paceline::viewer {

const QImage& RowsPicture::update(const QSize& size, qreal ratio, const RowLayout& rows, int scroll_y, int names_width,
                                  const Paint& paint) {
  if (size_ != size || picture_.devicePixelRatio() != ratio) {
    size_ = size;
    picture_ = QImage(size * ratio, QImage::Format_RGB32);
    picture_.setDevicePixelRatio(ratio);
    stale_ = true;
  }
  const int pinned = rows.pinned_height(size.height() - ruler_height);
  const std::vector<QRect> parts = parts_to_paint(scroll_y, names_width, pinned);
  scroll_y_ = scroll_y;
  stale_ = rows_ready_ = false;
  if (parts.empty()) return picture_;
  counts_ = {};
  {
    QPainter painter(&picture_);
    for (const QRect& part : parts) counts_ += paint(painter, part);
  }
  incomplete_.clear();
  for (const auto& [top, bottom] :
       {std::pair(0, pinned), std::pair(pinned + scroll_y, scroll_y + size.height() - ruler_height)}) {
    for (const PlacedRow& placed : rows.rows_between(top, bottom)) {
      if (!placed.row->complete()) incomplete_.emplace_back(placed.y, placed.end_y);
    }
  }
  return picture_;
}

std::vector<QRect> RowsPicture::parts_to_paint(int scroll_y, int names_width, int pinned) {
  const QRect all(QPoint(0, 0), size_), rows = all.adjusted(0, ruler_height + pinned, 0, 0);
  const int down = scroll_y_ - scroll_y;
  // Qt scales hatching in a way that depends on where it is.
  const bool can_move = std::abs(down) < rows.height() && picture_.devicePixelRatio() == 1;
  if (stale_ || (down != 0 && !can_move)) return {all};
  std::vector<QRect> parts;
  if (down != 0) {
    move(down, rows.top());
    QRect came_in = rows;
    if (down > 0) {
      came_in.setHeight(down);
    } else {
      came_in.setTop(rows.bottom() + 1 + down);
    }
    parts.push_back(came_in);
    // The name of the uppermost rank stays in sight.
    parts.emplace_back(0, rows.top(), names_width, rows.height());
  }
  if (rows_ready_) {
    for (const auto& [top, bottom] : incomplete_) {
      const bool fixed = top < pinned;
      const QRect row =
          (fixed ? all : rows) & QRect(0, top + ruler_height - (fixed ? 0 : scroll_y), size_.width(), bottom - top);
      if (!row.isEmpty()) parts.push_back(row);
    }
  }
  return parts;
}

void RowsPicture::move(int pixels, int top) {
  const qsizetype line = picture_.bytesPerLine(), by = line * std::abs(pixels);
  uchar* const rows = picture_.bits() + line * top;
  const auto bytes = static_cast<std::size_t>(picture_.sizeInBytes() - line * top - by);
  if (pixels > 0) {
    std::memmove(rows + by, rows, bytes);
  } else {
    std::memmove(rows, rows + by, bytes);
  }
}

}  // namespace paceline::viewer
