// SPDX-License-Identifier: Apache-2.0
// The cost of a frame of the timeline with 1 and 10 million slices, compared with that of a painter without the index
// for drawing, which loops over all slices in view; and the cost of placing the rows of many ranks.
//
// usage: viewer_bench [--benchmark_…]     the benchmarks
//        viewer_bench [--cpu-time] RUN    how the window of that run behaves: viewer_scale.cpp. Ends with status 1
//                                         below a goal. --cpu-time: frames and events are judged by their CPU time
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QImage>
#include <QPainter>
#include <iostream>
#include <map>
#include <string_view>

#include "analysis/trace/builder.h"
#include "tests/bench/viewer_scale.h"
#include "tests/unit/viewer/simulated_run.h"
#include "viewer/drawing/appearance.h"
#include "viewer/session/view_state.h"
#include "viewer/timeline/timeline_painter.h"

namespace paceline::viewer {
namespace {

constexpr int width = 1600, height = 600;

// With states of the threads, which switch every 500 µs, or without.
std::shared_ptr<const Run> run_of(std::int64_t slices, bool states = false) {
  static std::map<std::pair<std::int64_t, bool>, std::shared_ptr<const Run>> runs;
  auto& run = runs[{slices, states}];
  if (!run) {
    // An iteration of four ranks is some 490 slices.
    run = index_run(
        "simulated",
        simulate({.ranks = 4, .iterations = static_cast<int>(slices / 490), .switch_ns = states ? 500'000 : 0}));
  }
  return run;
}

struct Scene {
  explicit Scene(const std::shared_ptr<const Run>& run, double share)
      : document(run), state(*run), rows(document, state.arrangement), image(width, height, QImage::Format_RGB32) {
    state.time.set_width(width - header_width);
    state.arrangement.set_all_collapsed(false);
    const double middle = (run->begin_ns + run->end_ns) / 2, half = share * (run->end_ns - run->begin_ns) / 2;
    state.time.show_part({middle - half, middle + half});
    rows.place(height - ruler_height);
  }
  DrawCounts paint(TimelinePainter& painter, int scroll_y = 0) {
    QPainter canvas(&image);
    return painter.paint(canvas, image.size(), state, rows, scroll_y, std::nullopt);
  }
  Document document;
  ViewState state;
  RowLayout rows;
  QImage image;
};

// Arguments: slices, and the part of the run in view as 1 / n.
void frames(benchmark::State& state, bool states) {
  const auto run = run_of(state.range(0), states);
  Scene scene(run, 1.0 / static_cast<double>(state.range(1)));
  TimelinePainter painter(scene.document, Theme::light(), QFont("DejaVu Sans"));
  DrawCounts counts = scene.paint(painter);
  scene.document.background().finish();  // the indexes
  for (auto _ : state) counts = scene.paint(painter);
  state.counters["slices"] = static_cast<double>(run->slices);
  state.counters["rectangles"] = static_cast<double>(counts.rectangles);
}

void indexed(benchmark::State& state) { frames(state, false); }
void indexed_with_states(benchmark::State& state) { frames(state, true); }

void naive(benchmark::State& state) {
  const auto run = run_of(state.range(0));
  Scene scene(run, 1.0 / static_cast<double>(state.range(1)));
  const TimeAxis& axis = scene.state.time.axis();
  SliceColours colours(run->trace, Theme::light());
  std::size_t rectangles = 0;
  for (auto _ : state) {
    QPainter canvas(&scene.image);
    canvas.fillRect(scene.image.rect(), Qt::white);
    rectangles = 0;
    for (std::size_t r = 0; r < run->trace.ranks.size(); ++r) {
      const auto& rank = run->trace.ranks[r];
      for (std::size_t t = 0; t < rank.tracks.size(); ++t) {
        const auto& track = rank.tracks[t];
        const PlacedRow* row = scene.rows.row_of({.rank = r, .track = t});
        if (row == nullptr || row->y > height) continue;
        const int level = scene.rows.level_height(), y = row->y + row->row->height().pixels;
        for (std::uint32_t i = 0; i < track.slices.size(); ++i) {
          const double from = axis.x_of(static_cast<double>(track.slices.start_ns[i]));
          const double to = axis.x_of(static_cast<double>(track.slices.end_ns(i)));
          if (to < 0 || from > axis.width()) continue;
          canvas.fillRect(header_width + static_cast<int>(from), y + track.slices.depth[i] * level,
                          std::max(1, static_cast<int>(to - from)), level - 1,
                          QColor(colours.of(track.slices.kind[i])));
          ++rectangles;
        }
      }
    }
  }
  state.counters["slices"] = static_cast<double>(run->slices);
  state.counters["rectangles"] = static_cast<double>(rectangles);
}

// Placing all rows, as folding or resizing does, and a frame somewhere in their middle. Argument: ranks of 20 rows
// each.
std::shared_ptr<const Run> wide_run(std::int64_t ranks) {
  analysis::TraceBuilder builder;
  for (int r = 0; r < ranks; ++r) {
    analysis::RankBuilder& rank = builder.add_rank(r, static_cast<int>(ranks));
    rank.info().end_ns = 1000;
    rank.add_main_thread().add_slice(0, 1000, "step");
    for (std::uint64_t thread = 2; thread <= 19; ++thread) {
      rank.add_track(analysis::TrackKind::thread, "thread", thread).add_slice(0, 500, "work");
    }
  }
  return index_run("wide", builder.finish());
}

void place_rows(benchmark::State& state) {
  Scene scene(wide_run(state.range(0)), 1);
  for (auto _ : state) scene.rows.place(height - ruler_height);
  state.counters["rows"] = static_cast<double>(scene.rows.rows().size());
}

void frame_of_many_rows(benchmark::State& state) {
  Scene scene(wide_run(state.range(0)), 1);
  TimelinePainter painter(scene.document, Theme::light(), QFont("DejaVu Sans"));
  for (auto _ : state) scene.paint(painter, scene.rows.height() / 2);
  state.counters["rows"] = static_cast<double>(scene.rows.rows().size());
}

void arguments(benchmark::internal::Benchmark* benchmark) {
  for (const int slices : {1'000'000, 10'000'000}) {
    for (const int part : {1, 100, 10'000}) benchmark->Args({slices, part});
  }
  benchmark->Unit(benchmark::kMillisecond);
}
BENCHMARK(indexed)->Apply(arguments);
BENCHMARK(indexed_with_states)->Apply(arguments);
BENCHMARK(naive)->Apply(arguments);
BENCHMARK(place_rows)->Arg(100)->Arg(1000)->Arg(10'000)->Unit(benchmark::kMillisecond);
BENCHMARK(frame_of_many_rows)->Arg(100)->Arg(1000)->Arg(10'000)->Unit(benchmark::kMillisecond);

// Prints below the table how much longer the painter without the index takes.
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
  paceline::viewer::MeasuredApplication application(argc, argv);
  paceline::viewer::apply_theme("light");
  const bool by_cpu_time = argc == 3 && std::string_view(argv[1]) == "--cpu-time";
  if (by_cpu_time || (argc == 2 && argv[1][0] != '-')) {
    try {
      return paceline::viewer::measure_scale(application, argv[argc - 1], by_cpu_time) ? 0 : 1;
    } catch (const std::exception& error) {
      std::cerr << "viewer_bench: " << error.what() << '\n';
      return 1;
    }
  }
  benchmark::Initialize(&argc, argv);
  paceline::viewer::WithRatios reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return 0;
}
