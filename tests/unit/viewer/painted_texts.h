// SPDX-License-Identifier: Apache-2.0
// Paints a widget and collects each text with its colour and the colours below it.
#pragma once

#include <QColor>
#include <QImage>
#include <QPaintDevice>
#include <QPaintEngine>
#include <QPainter>
#include <QPainterPath>
#include <QWidget>
#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "tests/unit/viewer/simulated_run.h"
#include "viewer/drawing/palette.h"

namespace paceline::viewer {

struct PaintedText {
  QString text;
  QRgb colour = 0;
  double contrast = 0;  // the least, to the colours below it
  QRgb below = 0;       // the colour with that contrast
  QRect box, visible;   // in pixels of the widget: what the text needs, and the part of it that is not clipped
};

// Forwards all but texts to a picture, so that the picture has what is below them. It takes the part of an SVG engine,
// for which the timeline paints its rows directly.
class TextCollector : public QPaintEngine {
 public:
  explicit TextCollector(QSize size) : QPaintEngine(AllFeatures), picture_(size, QImage::Format_ARGB32_Premultiplied) {
    picture_.fill(Qt::magenta);  // nothing stays unpainted below a text
  }
  const std::vector<PaintedText>& texts() const { return texts_; }

  bool begin(QPaintDevice*) override {
    below_ = std::make_unique<QPainter>(&picture_);
    return true;
  }
  bool end() override {
    below_.reset();
    return true;
  }
  Type type() const override { return SVG; }
  void updateState(const QPaintEngineState& state) override {
    below_->setTransform(state.transform());
    below_->setPen(state.pen());
    below_->setBrush(state.brush());
    below_->setBrushOrigin(state.brushOrigin());
    below_->setBackground(state.backgroundBrush());
    below_->setBackgroundMode(state.backgroundMode());
    below_->setOpacity(state.opacity());
    below_->setRenderHints(state.renderHints());
    below_->setCompositionMode(state.compositionMode());
    if (state.state() & DirtyClipRegion) below_->setClipRegion(state.clipRegion(), state.clipOperation());
    if (state.state() & DirtyClipPath) below_->setClipPath(state.clipPath(), state.clipOperation());
    if (state.state() & DirtyClipEnabled) below_->setClipping(state.isClipEnabled());
  }
  void drawPath(const QPainterPath& path) override { below_->drawPath(path); }
  void drawPolygon(const QPointF* points, int count, PolygonDrawMode mode) override {
    if (mode == PolylineMode) return below_->drawPolyline(points, count);
    below_->drawPolygon(points, count, mode == WindingMode ? Qt::WindingFill : Qt::OddEvenFill);
  }
  void drawImage(const QRectF& to, const QImage& image, const QRectF& from, Qt::ImageConversionFlags) override {
    below_->drawImage(to, image, from);
  }
  void drawPixmap(const QRectF& to, const QPixmap& pixmap, const QRectF& from) override {
    below_->drawPixmap(to, pixmap, from);
  }
  void drawTiledPixmap(const QRectF& to, const QPixmap& pixmap, const QPointF& from) override {
    below_->drawTiledPixmap(to, pixmap, from);
  }
  void drawTextItem(const QPointF& at, const QTextItem& item) override {
    if (item.text().trimmed().isEmpty() || below_->pen().color().alpha() == 0) return;
    const QRectF box(at.x(), at.y() - item.ascent(), item.width(), item.ascent() + item.descent());
    collect(item.text(), below_->transform().mapRect(box).toAlignedRect());
  }

 private:
  void collect(const QString& text, QRect box) {
    const QRect whole = box;
    box &= picture_.rect();
    if (!systemClip().isEmpty()) box &= systemClip().boundingRect();
    if (below_->hasClipping()) box &= below_->transform().mapRect(below_->clipBoundingRect()).toAlignedRect();
    if (box.isEmpty()) return;
    std::map<QRgb, int> colours;
    double red = 0, green = 0, blue = 0;
    for (int y = box.top(); y <= box.bottom(); ++y) {
      for (int x = box.left(); x <= box.right(); ++x) {
        const QRgb pixel = picture_.pixel(x, y);
        ++colours[pixel];
        red += qRed(pixel), green += qGreen(pixel), blue += qBlue(pixel);
      }
    }
    // Colours of at least a quarter of the area; lines and dots are less. The mean where a gradient has no such colour.
    const int area = box.width() * box.height();
    std::vector<QRgb> below;
    for (const auto& [colour, pixels] : colours) {
      if (4 * pixels >= area) below.push_back(colour);
    }
    if (below.empty()) below.push_back(qRgb(int(red / area), int(green / area), int(blue / area)));
    PaintedText painted{.text = text, .contrast = 100, .box = whole, .visible = box};
    const QColor pen = below_->pen().color();
    const double opacity = pen.alphaF() * below_->opacity();
    for (const QRgb colour : below) {
      const auto mix = [&](int front, int back) { return int(front * opacity + back * (1 - opacity)); };
      const QRgb seen =
          qRgb(mix(pen.red(), qRed(colour)), mix(pen.green(), qGreen(colour)), mix(pen.blue(), qBlue(colour)));
      if (const double ratio = contrast(seen, colour); ratio < painted.contrast) {
        painted.contrast = ratio, painted.colour = seen, painted.below = colour;
      }
    }
    texts_.push_back(painted);
  }

  QImage picture_;
  std::unique_ptr<QPainter> below_;
  std::vector<PaintedText> texts_;
};

class TextDevice : public QPaintDevice {
 public:
  explicit TextDevice(QSize size) : size_(size), collector_(size) {}
  QPaintEngine* paintEngine() const override { return &collector_; }
  const std::vector<PaintedText>& texts() const { return collector_.texts(); }

 protected:
  int metric(PaintDeviceMetric metric) const override {
    switch (metric) {
      case PdmWidth:
        return size_.width();
      case PdmHeight:
        return size_.height();
      case PdmDevicePixelRatio:
        return 1;
      case PdmDevicePixelRatioScaled:
        return int(devicePixelRatioFScale());
      case PdmDepth:
        return 32;
      case PdmNumColors:
        return 1 << 24;
      case PdmWidthMM:
        return size_.width() * 254 / 960;
      case PdmHeightMM:
        return size_.height() * 254 / 960;
      default:
        return 96;  // dots per inch
    }
  }

 private:
  QSize size_;
  mutable TextCollector collector_;
};

inline std::vector<PaintedText> painted_texts(QWidget& widget) {
  TextDevice device(widget.size());
  widget.render(&device);
  return device.texts();
}

// With everything that has texts: layers, counters, findings, states of threads.
inline std::shared_ptr<const Run> run_with_texts(int ranks) {
  return index_run("states", simulate({.ranks = ranks,
                                       .iterations = 8,
                                       .layers = true,
                                       .slow_rank = 2,
                                       .slowness = 1.5,
                                       .slow_iteration = 5,
                                       .switch_ns = 500'000}));
}

}  // namespace paceline::viewer
