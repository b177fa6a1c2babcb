// What a frame of the timeline costs with 1 and 10 million slices, and what a painter without the index for drawing
// would cost: a loop over all slices that are in view.
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QImage>
#include <QPainter>
#include <map>

#include "tests/unit/viewer/simulated_run.h"
#include "viewer/drawing/appearance.h"
#include "viewer/timeline/timeline_painter.h"

namespace paceline::viewer {
namespace {

constexpr int width = 1600, height = 600;

const Run& run_of(std::int64_t slices) {
  static std::map<std::int64_t, std::shared_ptr<const Run>> runs;
  auto& run = runs[slices];
  if (!run) {
    // An iteration of four ranks is some 490 slices.
    run = index_run("simulated", simulate({.ranks = 4, .iterations = static_cast<int>(slices / 490)}));
  }
  return *run;
}

struct Scene {
  explicit Scene(const Run& run, double share)
      : axis(run.begin_ns, run.end_ns), rows(run), image(width, height, QImage::Format_RGB32) {
    axis.set_width(width - header_width);
    const double middle = (run.begin_ns + run.end_ns) / 2, half = share * (run.end_ns - run.begin_ns) / 2;
    axis.show({middle - half, middle + half});
    rows.set_room(height - ruler_height);
  }
  TimeAxis axis;
  RowLayout rows;
  QImage image;
};

// Arguments: slices, and the part of the run in view as 1 / n.
void indexed(benchmark::State& state) {
  const Run& run = run_of(state.range(0));
  Scene scene(run, 1.0 / static_cast<double>(state.range(1)));
  TimelinePainter painter(run, Theme::light(), QFont("DejaVu Sans"));
  DrawCounts counts;
  for (auto _ : state) {
    QPainter canvas(&scene.image);
    counts = painter.paint(canvas, scene.image.size(), scene.axis, scene.rows, 0, std::nullopt);
  }
  state.counters["slices"] = static_cast<double>(run.slices());
  state.counters["rectangles"] = static_cast<double>(counts.rectangles);
}

void naive(benchmark::State& state) {
  const Run& run = run_of(state.range(0));
  Scene scene(run, 1.0 / static_cast<double>(state.range(1)));
  SliceColours colours(run.trace, Theme::light());
  std::size_t rectangles = 0;
  for (auto _ : state) {
    QPainter canvas(&scene.image);
    canvas.fillRect(scene.image.rect(), Qt::white);
    rectangles = 0;
    for (const RankRows& rank : scene.rows.ranks()) {
      for (const TrackRows& rows : rank.tracks) {
        if (rows.y > height) continue;
        const auto& model = run.trace.ranks[rank.rank];
        const auto& track = model.tracks[rows.track];
        for (std::uint32_t i = 0; i < track.slices.size(); ++i) {
          const double from = scene.axis.x_of(static_cast<double>(track.slices.start_ns[i]));
          const double to = scene.axis.x_of(static_cast<double>(track.slices.end_ns(i)));
          if (to < 0 || from > scene.axis.width()) continue;
          canvas.fillRect(header_width + static_cast<int>(from), rows.depth_y(track.slices.depth[i]),
                          std::max(1, static_cast<int>(to - from)), rows.depth_height - 1,
                          QColor(colours.of(model, track, i)));
          ++rectangles;
        }
      }
    }
  }
  state.counters["slices"] = static_cast<double>(run.slices());
  state.counters["rectangles"] = static_cast<double>(rectangles);
}

void arguments(benchmark::internal::Benchmark* benchmark) {
  for (const int slices : {1'000'000, 10'000'000}) {
    for (const int part : {1, 100, 10'000}) benchmark->Args({slices, part});
  }
  benchmark->Unit(benchmark::kMillisecond);
}
BENCHMARK(indexed)->Apply(arguments);
BENCHMARK(naive)->Apply(arguments);

// Prints, below the table, how much longer the painter without the index takes.
class WithRatios : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      const std::string name = run.benchmark_name();
      times_[name.substr(0, name.find('/'))][name.substr(name.find('/'))] = run.GetAdjustedCPUTime();
    }
  }
  void Finalize() override {
    for (const auto& [arguments, ms] : times_["indexed"]) {
      GetOutputStream() << "naive / indexed" << arguments << ": " << times_["naive"][arguments] / ms << '\n';
    }
  }

 private:
  std::map<std::string, std::map<std::string, double>> times_;
};

}  // namespace
}  // namespace paceline::viewer

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  paceline::viewer::apply_theme("light");
  benchmark::Initialize(&argc, argv);
  paceline::viewer::WithRatios reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return 0;
}
