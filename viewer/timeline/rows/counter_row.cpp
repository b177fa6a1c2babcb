// SPDX-License-Identifier: Apache-2.0
// A counter's graph: an area below the least value of each column, fainter up to the greatest, whose pixel is the line.
#include <QFontMetrics>
#include <algorithm>
#include <cmath>

#include "analysis/text/numbers.h"
#include "viewer/text/time_text.h"
#include "viewer/timeline/rows/rows.h"

namespace paceline::viewer {
namespace {

class CounterRow : public Row {
 public:
  // A rank's first counter stands for all of them until they are unfolded.
  CounterRow(Document& document, std::size_t rank, std::size_t track, bool first)
      : Row(document, rank, first ? Hidden::with_rank : Hidden::with_counters), track_(track), first_(first) {}

  Height height() const override { return {1, 4}; }
  QString name() const override { return shown_name(track().label); }

  void paint(RowCanvas& canvas) override {
    const auto columns = canvas.axis.columns();
    const int height = canvas.height - 1;
    QImage& image = canvas.blank(columns.count, height);
    // Grey, since colours stand for phases.
    const auto grey = [&](int percent) { return blend(canvas.theme.text, canvas.theme.background, percent); };
    const QRgb line = grey(70), always = grey(28), sometimes = grey(14);
    const auto y_of = [&](double value) {
      const double share = std::clamp(value / graph().top, 0.0, 1.0);
      return height - 1 - static_cast<int>(std::lround(share * (height - 1)));
    };
    for (int x = 0; x < columns.count; ++x) {
      const double begin = columns.begin_ns + x * columns.ns_per_pixel;
      const auto range = graph().between(begin, begin + columns.ns_per_pixel);
      if (!range) continue;
      const int greatest = y_of(range->high), least = y_of(range->low);
      for (int y = greatest; y < height; ++y) {
        reinterpret_cast<QRgb*>(image.scanLine(y))[x] = y == greatest ? line : y < least ? sometimes : always;
      }
    }
    canvas.painter.drawImage(QPoint(0, canvas.y), image);
    canvas.painter.fillRect(0, canvas.y + height, columns.count, 1, QColor(canvas.theme.grid));
    canvas.counts.rectangles += 2;
  }

  void paint_header(RowCanvas& canvas, const Arrangement& arrangement) override {
    if (first_) canvas.arrow(9, canvas.y + canvas.height / 2, !arrangement.counters_unfolded(rank()));
    QRect box = canvas.name_box();
    const QString top = quantity(graph().top);  // the value at the row's upper edge
    canvas.painter.setFont(canvas.small);
    canvas.painter.setPen(QColor(canvas.theme.faint_text));
    canvas.painter.drawText(box, Qt::AlignTop | Qt::AlignRight, top);
    box.setRight(box.right() - QFontMetrics(canvas.small).horizontalAdvance(top) - 6);
    paint_track_label(canvas, name(), false, box);
  }

  void header_clicked(Arrangement& arrangement) const override {
    if (first_) arrangement.set_counters_unfolded(rank(), !arrangement.counters_unfolded(rank()));
  }

  QString header_tooltip(const Arrangement&) const override {
    return viewer::tooltip(name(), tooltip_line("upper edge", quantity(graph().top)));
  }

  QString tooltip(const RowPoint& point) override {
    const auto range = graph().between(point.time_ns, point.time_ns + point.ns_per_pixel);
    if (!range) return {};
    const QString low = quantity(range->low), high = quantity(range->high);
    return viewer::tooltip(QString::fromStdString(track().label),
                           tooltip_line("value", low == high ? high : low + " to " + high) +
                               tooltip_line("time", time_text(point.time_ns, point.ns_per_pixel, point.end_ns)));
  }

 private:
  const analysis::Track& track() const { return model().tracks[track_]; }
  const CounterGraph& graph() const { return index().graphs[track_]; }
  QString quantity(double value) const { return QString::fromStdString(analysis::quantity(value, graph().curve.unit)); }

  std::size_t track_;
  bool first_;
};

}  // namespace

void add_counter_rows(Document& document, std::size_t rank, Rows& rows) {
  const auto& graphs = document.run().ranks[rank].graphs;
  bool first = true;
  for (std::size_t track = 0; track < graphs.size(); ++track) {
    if (graphs[track].empty()) continue;
    rows.push_back(std::make_unique<CounterRow>(document, rank, track, first));
    first = false;
  }
}

}  // namespace paceline::viewer
