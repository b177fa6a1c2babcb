// SPDX-License-Identifier: Apache-2.0
// A strip below the work of a GPU's stream: why the stream was idle between one piece of its work and the next. Each
// column stacks the shares of the causes in its range of time.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "viewer/drawing/gpu_strip.h"
#include "viewer/text/time_text.h"
#include "viewer/timeline/rows/rows.h"

namespace paceline::viewer {
namespace {

struct Cause {
  const char* text;
  analysis::Phase phase;  // that has the same colour
  IntervalSums gaps;
};
using Causes = std::array<Cause, 3>;  // from the bottom of the strip to its top

class IdleRow : public Row {
 public:
  IdleRow(Document& document, std::size_t rank, std::size_t track)
      : Row(document, rank, Hidden::with_rank), track_(track), gaps_(document) {}

  Height height() const override { return {0, 6}; }
  bool is_states() const override { return true; }
  void set_filter(const KindSet& kinds) override { kinds_ = kinds; }
  bool shown() const override {
    const auto& own = index().kinds[track_];
    return !kinds_ || std::ranges::any_of(own, [&](analysis::KindId kind) { return (*kinds_)[kind]; });
  }
  QString name() const override { return shown_name(model().tracks[track_].label); }
  void prepare() override { gaps(); }
  bool complete() const override { return gaps_.made() != nullptr; }

  void paint(RowCanvas& canvas) override {
    const Causes* causes = gaps();
    if (causes == nullptr) return;
    QImage& image = canvas.blank(canvas.axis.width(), canvas.height);
    for (int x = 0; x < image.width(); ++x) {
      double idle_ns = 0;
      int y = image.height();
      for (const Cause& cause : *causes) {
        idle_ns += cause.gaps.between(canvas.axis.time_at(x), canvas.axis.time_at(x + 1));
        const double share = std::min(idle_ns / canvas.axis.ns_per_pixel(), 1.0);
        const int top = image.height() - static_cast<int>(std::lround(share * image.height()));
        while (y > top) image.setPixel(x, --y, phase_colour(cause.phase, canvas.theme));
      }
    }
    canvas.painter.drawImage(QPoint(0, canvas.y), image);
    ++canvas.counts.rectangles;
  }
  void paint_header(RowCanvas&, const Arrangement&) override {}

  QString tooltip(const RowPoint& point) override {
    if (gaps() == nullptr) return {};
    for (const Cause& cause : *gaps()) {
      const auto* gap = cause.gaps.first_in(point.time_ns, point.time_ns + point.ns_per_pixel);
      if (gap == nullptr) continue;
      return viewer::tooltip(
          name() + ": idle, " + cause.text,
          tooltip_line("duration", duration_text(gap->end_ns - gap->start_ns)) +
              tooltip_line("start", time_text(double(gap->start_ns), point.ns_per_pixel, point.end_ns)));
    }
    return {};
  }

 private:
  const Causes* gaps() {
    std::size_t slices = 0;
    for (const analysis::Track& track : model().tracks) slices += track.slices.size();
    return gaps_.get(slices, [run = document_.shared_run(), rank = rank(), track = track_] {
      const analysis::Rank& of = run->trace.ranks[rank];
      const auto streams = streams_of(of);
      const auto stream = std::ranges::find(streams, &of.tracks[track], [](const auto& one) { return one.tracks[0]; });
      auto found = idle_gaps(of, *stream, analysis::Correlations(run->trace, of));
      return Causes{{{"host wait", analysis::Phase::launch, IntervalSums(std::move(found.host_wait))},
                     {"kernel wait", analysis::Phase::idle, IntervalSums(std::move(found.kernel_wait))},
                     {"other", analysis::Phase::other, IntervalSums(std::move(found.other))}}};
    });
  }

  std::size_t track_;
  KindSet kinds_;
  OnDemand<Causes> gaps_;
};

}  // namespace

void add_idle_row(Document& document, std::size_t rank, std::size_t stream, Rows& rows) {
  const analysis::Rank& of = document.run().trace.ranks[rank];
  const auto is_first = [&](const analysis::Stream& one) { return one.tracks.front() == &of.tracks[stream]; };
  if (of.tracks[stream].slices.size() < 2 || std::ranges::none_of(streams_of(of), is_first)) return;
  rows.push_back(std::make_unique<IdleRow>(document, rank, stream));
}

}  // namespace paceline::viewer
