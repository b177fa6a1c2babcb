// SPDX-License-Identifier: Apache-2.0
// The ranges below a stream of a GPU: each where the work ran that was launched from inside it. A click selects the
// range on its thread.
#include <algorithm>

#include "analysis/device/projected_ranges.h"
#include "viewer/text/time_text.h"
#include "viewer/timeline/rows/rows.h"

namespace paceline::viewer {
namespace {

class ProjectedRow : public Row {
 public:
  ProjectedRow(Document& document, std::size_t rank, std::size_t stream)
      : Row(document, rank, Hidden::with_rank), stream_(stream), shown_(document) {}

  Height height() const override {
    const Projection* made = shown_.made();
    return {made == nullptr ? 1 : std::max(1, static_cast<int>(made->levels.depths())), 0};
  }
  bool shown() const override { return shown_.made() == nullptr || shown_.made()->levels.depths() > 0; }
  void set_filter(const KindSet& kinds) override {
    kinds_ = kinds;
    shown_.reset();
  }
  QString name() const override { return "ranges of " + shown_name(model().tracks[stream_].label); }

  void prepare() override { projection(); }
  bool complete() const override { return shown_.made() != nullptr; }

  void paint(RowCanvas& canvas) override {
    const Projection* made = projection();
    if (made == nullptr) return;
    canvas.painter.setFont(canvas.small);
    for (unsigned depth = 0; depth < made->levels.depths(); ++depth) {
      const int y = canvas.y + static_cast<int>(depth) * canvas.level_height;
      if (y + canvas.level_height > canvas.top && y < canvas.bottom) paint_level(canvas, *made, depth, y);
    }
  }
  void paint_header(RowCanvas& canvas, const Arrangement&) override {
    QRect box = canvas.name_box();
    box.setHeight(canvas.level_height);
    paint_track_label(canvas, canvas.of_rank.isEmpty() ? QString("   its ranges") : name(), false, box);
  }
  QString header_tooltip(const Arrangement&) const override {
    return viewer::tooltip(name(), tooltip_line("each", "from its first to its last kernel or copy on this stream"));
  }

  QString tooltip(const RowPoint& point) override {
    const auto at = found_at(point);
    if (!at) return {};
    const auto& [slices, origins] = projection()->ranges;
    const analysis::ProjectedRanges::Origin& origin = origins[*at];
    const SliceRef range = origin_of(*at);
    const std::int64_t lag_ns = slices.start_ns[*at] - slices_of(run(), range).start_ns[range.slice];
    return viewer::tooltip(
        slice_title(run(), range),
        tooltip_line("on this stream", duration_text(slices.duration_ns[*at])) +
            tooltip_line("work", QString("%1 in %2")
                                     .arg(duration_text(origin.work_ns),
                                          plural_text(origin.operations, "kernel or copy", "kernels and copies"))) +
            tooltip_line("on its thread", duration_text(slices_of(run(), range).duration_ns[range.slice])) +
            tooltip_line("begins here later by", duration_text(lag_ns)));
  }
  std::optional<SliceRef> slice_at(const RowPoint& point) override {
    const auto at = found_at(point);
    return at ? std::optional(origin_of(*at)) : std::nullopt;
  }
  std::optional<double> edge_near(const RowPoint& point, double slack_ns) override {
    const auto at = found_at(point);
    if (!at) return std::nullopt;
    const analysis::Slices& slices = projection()->ranges.slices;
    for (const std::int64_t edge_ns : {slices.start_ns[*at], slices.end_ns(*at)}) {
      if (std::abs(double(edge_ns) - point.time_ns) <= slack_ns) return double(edge_ns);
    }
    return std::nullopt;
  }

 private:
  struct Projection {
    analysis::ProjectedRanges ranges;
    analysis::LevelOfDetail levels;
  };

  const Projection* projection() {
    std::size_t slices = 0;
    for (const analysis::Track& track : model().tracks) slices += track.slices.size();
    return shown_.get(slices, [run = document_.shared_run(), rank = rank(), stream = stream_, kinds = kinds_] {
      const analysis::Rank& of = run->trace.ranks[rank];
      Projection made;
      made.ranges = projected_ranges(run->trace, of, stream, analysis::Correlations(run->trace, of));
      using Detail = analysis::LevelOfDetail;
      made.levels = kinds ? Detail(made.ranges.slices, *kinds) : Detail(made.ranges.slices);
      return made;
    });
  }

  SliceRef origin_of(std::size_t i) {
    const analysis::ProjectedRanges::Origin& origin = projection()->ranges.origins[i];
    return {.rank = rank(), .track = origin.track, .slice = origin.slice};
  }

  std::optional<std::uint32_t> found_at(const RowPoint& point) {
    const Projection* made = projection();
    if (made == nullptr || point.y < 0) return std::nullopt;
    return made->levels.slice_at(made->ranges.slices, static_cast<unsigned>(point.y / point.level_height),
                                 point.time_ns + 0.5 * point.ns_per_pixel, 0.5 * point.ns_per_pixel);
  }

  // All stretches in one line of pixels, the labels on top of it.
  void paint_level(RowCanvas& canvas, const Projection& made, unsigned depth, int y) {
    const auto columns = canvas.axis.columns();
    made.levels.items(made.ranges.slices, depth, columns, canvas.items, columns.ns_per_pixel / 2);
    if (canvas.items.empty()) return;
    QImage& line = canvas.blank(columns.count, 1);
    auto* pixels = reinterpret_cast<QRgb*>(line.scanLine(0));
    const auto colour_of = [&](const auto& item) { return canvas.colours.of(made.ranges.slices.kind[item.slice]); };
    for (const auto& item : canvas.items) {
      const int gap = item.end - item.first < 3 ? 0 : 1;
      const int left = std::max(item.first, 0), right = std::min(item.end, columns.count) - gap;
      if (left < right) std::fill(pixels + left, pixels + right, colour_of(item));
    }
    canvas.painter.drawImage(QRect(0, y, columns.count, canvas.level_height - 1), line);
    ++canvas.counts.rectangles;
    for (const auto& item : canvas.items) {
      const int left = std::max(item.first, 0), right = std::min(item.end, columns.count);
      if (item.count > 1 || right - left < 20) continue;
      const QRect box(left, y, right - left - 1, canvas.level_height - 1);
      canvas.counts.labels += paint_label(canvas.painter, box, slice_title(run(), origin_of(item.slice)),
                                          colour_of(item), Qt::ElideMiddle, &canvas.labels);
    }
  }

  std::size_t stream_;
  KindSet kinds_;
  OnDemand<Projection> shown_;
};

}  // namespace

void add_projected_row(Document& document, std::size_t rank, std::size_t stream, Rows& rows) {
  const auto& tracks = document.run().trace.ranks[rank].tracks;
  const auto is_thread = [](const analysis::Track& track) { return track.kind == analysis::TrackKind::thread; };
  if (std::ranges::any_of(tracks, is_thread)) rows.push_back(std::make_unique<ProjectedRow>(document, rank, stream));
}

}  // namespace paceline::viewer
