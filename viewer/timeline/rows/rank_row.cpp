// SPDX-License-Identifier: Apache-2.0
// The first row of each rank: the strip of its phases, beside the rank's name and host, a warning sign if the trace
// does not hold everything, and a bar for how long the others waited for it.
#include <QFontMetrics>
#include <algorithm>
#include <cmath>
#include <utility>

#include "viewer/drawing/gpu_strip.h"
#include "viewer/drawing/phase_strip.h"
#include "viewer/text/time_text.h"
#include "viewer/timeline/rows/rows.h"

namespace paceline::viewer {
namespace {

constexpr int least_text_height = 12, lateness_width = 40;
constexpr QRgb warning_colour = 0xffe6a100;

class RankRow : public Row {
 public:
  RankRow(Document& document, std::size_t rank) : Row(document, rank, Hidden::never), gpu_(document) {
    for (const analysis::Track& track : model().tracks) {
      if (track.kind == analysis::TrackKind::stream) stream_slices_ += track.slices.size();
    }
  }

  Height height() const override { return {1, 4}; }
  bool is_strip() const override { return true; }

  void prepare() override { gpu(); }
  bool complete() const override { return stream_slices_ == 0 || gpu_.made() != nullptr; }

  void look_up(const RowCanvas& canvas) override {
    shares_ = shares_of(index(), waits(), canvas.axis, strip(canvas).height(), canvas.theme);
  }

  void paint(RowCanvas& canvas) override {
    canvas.painter.setFont(canvas.small);
    LabelTexts* labels = canvas.height >= least_text_height ? &canvas.labels : nullptr;
    canvas.counts += paint_phases(canvas.painter, index(), waits(), canvas.axis, strip(canvas), canvas.theme, labels,
                                  std::exchange(shares_, {}));
    if (const GpuStrip* gpu = gpu_.made()) {
      canvas.counts.rectangles += gpu->paint(canvas.painter, canvas.axis, lanes(canvas), canvas.theme);
    }
  }

  void paint_header(RowCanvas& canvas, const Arrangement& arrangement) override {
    QPainter& painter = canvas.painter;
    QRect box = canvas.name_box();
    if (arrangement.pinned(rank())) painter.fillRect(0, canvas.y, 4, canvas.height, QColor(canvas.theme.selection));
    if (const auto most = arrangement.most_waiting_caused_ns(); most > 0) {
      const int width =
          static_cast<int>(lateness_width * double(arrangement.waiting_caused_ns(rank())) / double(most) + 0.5);
      const int height = std::min(canvas.height - 1, 10);
      const QRect bar(box.right() - lateness_width, canvas.y + (canvas.height - height) / 2, lateness_width, height);
      painter.fillRect(bar, QColor(canvas.theme.row_line));
      painter.fillRect(bar.x(), bar.y(), width, height,
                       QColor(phase_colour(analysis::Phase::communication, canvas.theme)));
      box.setRight(bar.left() - 8);
    }
    if (index().incomplete) {
      const int size = std::min(canvas.height - 1, 12);
      paint_warning(painter, {box.right() - size, canvas.y + (canvas.height - size) / 2}, size, warning_colour);
      box.setRight(box.right() - size - 6);
    }
    const QString name = QString("Rank %1").arg(model().rank);
    painter.setPen(QColor(canvas.theme.header_text));
    if (canvas.height < least_text_height) {
      // Rows are lower than a line of text: every other name, or every third one, is written.
      const auto step = static_cast<std::size_t>((least_text_height + canvas.height - 1) / canvas.height);
      if (canvas.order % step != 0) return;
      painter.setFont(canvas.small);
      painter.drawText(box.adjusted(0, -6, 0, 6), Qt::AlignVCenter | Qt::AlignLeft, name);
      return;
    }
    canvas.arrow(9, canvas.y + canvas.height / 2, arrangement.collapsed(rank()));
    painter.setFont(canvas.bold);
    painter.drawText(box, Qt::AlignVCenter | Qt::AlignLeft, name);
    const QRect rest = box.adjusted(QFontMetrics(canvas.bold).horizontalAdvance(name) + 10, 0, 0, 0);
    painter.setFont(canvas.small);
    painter.setPen(QColor(canvas.theme.faint_text));
    const QString host = shown_name(model().host);
    painter.drawText(rest, Qt::AlignVCenter | Qt::AlignRight,
                     QFontMetrics(canvas.small).elidedText(host, Qt::ElideMiddle, rest.width()));
  }

  QString header_tooltip(const Arrangement& arrangement) const override {
    QString lines = tooltip_line("host", QString::fromStdString(model().host)) +
                    tooltip_line("process", QString::number(model().pid)) +
                    tooltip_line("clock", QString("%1, error at most %2")
                                              .arg(QString::fromStdString(model().clock_source),
                                                   duration_text(std::llround(model().clock_error_ns))));
    if (arrangement.most_waiting_caused_ns() > 0) {
      lines += tooltip_line("made others wait", duration_text(arrangement.waiting_caused_ns(rank())));
    }
    if (model().damaged) lines += tooltip_line("damaged", QString::fromStdString(model().damage));
    for (const auto& [cause, count] : model().dropped) {
      lines += tooltip_line("lost", QString("%L1 (%2)").arg(count).arg(QString::fromStdString(cause)));
    }
    return viewer::tooltip(QString("Rank %1 of %2").arg(model().rank).arg(model().world_size), lines);
  }

  void header_clicked(Arrangement& ranks) const override { ranks.set_collapsed(rank(), !ranks.collapsed(rank())); }

  QString tooltip(const RowPoint& point) override {
    const auto time = static_cast<std::int64_t>(point.time_ns);
    for (const Unrecorded& stretch : index().unrecorded) {
      if (time < stretch.start_ns || time >= stretch.end_ns) continue;
      return viewer::tooltip(stretch.text, tooltip_line("duration", duration_text(stretch.end_ns - stretch.start_ns)));
    }
    const auto interval = interval_at(point.time_ns);
    if (!interval) return {};
    QString lines = tooltip_line("duration", duration_text(interval->end_ns - interval->start_ns));
    if (interval->phase == analysis::Phase::idle) lines += tooltip_line("main thread", "waits for its GPU");
    if (interval->phase == analysis::Phase::communication && waits() != nullptr) {
      for (const Wait& wait : waits()->between(point.time_ns, point.time_ns + point.ns_per_pixel)) {
        lines += tooltip_line("waited", waited_text(run(), wait));
      }
    }
    lines += gpu_lines(double(interval->start_ns), double(interval->end_ns));
    return viewer::tooltip(QString("Rank %1: %2").arg(model().rank).arg(phase_text(interval->phase)), lines);
  }

  std::optional<analysis::TimeInterval> interval_around(double time_ns) const override {
    const auto interval = interval_at(time_ns);
    if (!interval) return std::nullopt;
    return analysis::TimeInterval{interval->start_ns, interval->end_ns};
  }

 private:
  // Of phases; the lanes of the GPUs are below it.
  QRect strip(const RowCanvas& canvas) const {
    const int gap = canvas.folded && canvas.height >= 8 ? 1 : 0;  // between the strips of folded ranks
    const int below = stream_slices_ > 0 ? GpuStrip::height_in(canvas.height) : 0;
    return {0, canvas.y, canvas.axis.width(), canvas.height - gap - below};
  }
  QRect lanes(const RowCanvas& canvas) const {
    return {0, strip(canvas).bottom() + 1, canvas.axis.width(), GpuStrip::height_in(canvas.height)};
  }

  // nullptr while a worker makes it, and where the rank has no streams.
  const GpuStrip* gpu() {
    if (stream_slices_ == 0) return nullptr;
    return gpu_.get(stream_slices_, [run = document_.shared_run(), rank = rank()] {
      return GpuStrip(analysis::gpu_activity(run->index->phases(), run->trace.ranks[rank]));
    });
  }

  // What the GPUs did between two times, for a tooltip.
  QString gpu_lines(double from_ns, double to_ns) {
    const GpuStrip* strip = gpu();
    if (strip == nullptr || strip->empty()) return {};
    const GpuStrip::Times times = strip->between(from_ns, to_ns);
    QString lines;
    for (const auto& [name, ns] : {std::pair("GPU computes", times.compute),
                                   {"GPU idle", times.idle},
                                   {"communication hidden", times.hidden},
                                   {"communication exposed", times.exposed}}) {
      if (ns >= 0.5) {
        lines += tooltip_line(
            name, QString("%1, %2").arg(duration_text(std::llround(ns)), share_text(ns / (to_ns - from_ns))));
      }
    }
    return lines;
  }

  std::optional<analysis::PhaseInterval> interval_at(double time_ns) const {
    return index().phases->at(static_cast<std::int64_t>(time_ns));
  }

  QImage shares_;  // between look_up() and paint()
  std::size_t stream_slices_ = 0;
  OnDemand<GpuStrip> gpu_;
};

}  // namespace

void add_rank_row(Document& document, std::size_t rank, Rows& rows) {
  rows.push_back(std::make_unique<RankRow>(document, rank));
}

}  // namespace paceline::viewer
