// SPDX-License-Identifier: Apache-2.0
// A strip below the work of a GPU's stream: why the stream was idle between one piece of its work and the next. Each
// column stacks the shares of the causes in its range of time.
#include <algorithm>
#include <array>
#include <cmath>

#include "viewer/drawing/gpu_strip.h"
#include "viewer/text/time_text.h"
#include "viewer/timeline/rows/rows.h"

namespace paceline::viewer {
namespace {

struct Cause {
  const char* text;
  analysis::Phase phase;  // that has the same colour
};
// By IdleCause, from the bottom of the strip to its top.
constexpr Cause idle_causes[] = {
    {"host wait", analysis::Phase::launch}, {"kernel wait", analysis::Phase::idle}, {"other", analysis::Phase::other}};

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
    const Gaps* of = gaps();
    if (of == nullptr) return;
    QImage& image = canvas.blank(canvas.axis.width(), canvas.height);
    for (int x = 0; x < image.width(); ++x) {
      double idle_ns = 0;
      int y = image.height();
      for (std::size_t cause = 0; cause < of->sums.size(); ++cause) {
        idle_ns += of->sums[cause].between(canvas.axis.time_at(x), canvas.axis.time_at(x + 1));
        const double share = std::min(idle_ns / canvas.axis.ns_per_pixel(), 1.0);
        const int top = image.height() - static_cast<int>(std::lround(share * image.height()));
        while (y > top) image.setPixel(x, --y, phase_colour(idle_causes[cause].phase, canvas.theme));
      }
    }
    canvas.painter.drawImage(QPoint(0, canvas.y), image);
    ++canvas.counts.rectangles;
  }
  void paint_header(RowCanvas&, const ViewState&) override {}

  QString tooltip(const RowPoint& point) override {
    const Gaps* of = gaps();
    if (of == nullptr) return {};
    const auto gap = std::ranges::partition_point(
        of->all, [&](const analysis::IdleGap& one) { return static_cast<double>(one.time.end_ns) <= point.time_ns; });
    if (gap == of->all.end() || static_cast<double>(gap->time.start_ns) > point.time_ns + point.ns_per_pixel) return {};
    return viewer::tooltip(
        name() + ": idle, " + idle_causes[static_cast<std::size_t>(gap->cause)].text,
        tooltip_line("duration", duration_text(gap->time.end_ns - gap->time.start_ns)) +
            tooltip_line("start", time_text(double(gap->time.start_ns), point.ns_per_pixel, point.end_ns)));
  }

 private:
  struct Gaps {
    std::vector<analysis::IdleGap> all;
    std::array<IntervalSums, std::size(idle_causes)> sums;
  };

  const Gaps* gaps() {
    std::size_t slices = 0;
    for (const analysis::Track& track : model().tracks) slices += track.slices.size();
    return gaps_.get(slices, [run = document_.shared_run(), rank = rank(), track = track_] {
      const analysis::Rank& of = run->trace.ranks[rank];
      Gaps made;
      for (const analysis::Stream& stream : streams_of(of)) {
        if (stream.tracks.front() != &of.tracks[track]) continue;
        made.all = idle_gaps(run->trace, of, stream, analysis::Correlations(run->trace, of));
      }
      std::array<analysis::Intervals, std::size(idle_causes)> by_cause;
      for (const analysis::IdleGap& gap : made.all) by_cause[static_cast<std::size_t>(gap.cause)].push_back(gap.time);
      for (std::size_t i = 0; i < by_cause.size(); ++i) made.sums[i] = IntervalSums(std::move(by_cause[i]));
      return made;
    });
  }

  std::size_t track_;
  KindSet kinds_;
  OnDemand<Gaps> gaps_;
};

}  // namespace

void add_idle_row(Document& document, std::size_t rank, std::size_t stream, Rows& rows) {
  const analysis::Rank& of = document.run().trace.ranks[rank];
  const auto is_first = [&](const analysis::Stream& one) { return one.tracks.front() == &of.tracks[stream]; };
  if (of.tracks[stream].slices.size() < 2 || std::ranges::none_of(streams_of(of), is_first)) return;
  rows.push_back(std::make_unique<IdleRow>(document, rank, stream));
}

}  // namespace paceline::viewer
