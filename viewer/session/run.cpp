#include "viewer/session/run.h"

#include <QDir>
#include <QFileInfo>
#include <algorithm>

#include "analysis/index/mpi_row.h"
#include "profiler/format/error.h"

namespace paceline::viewer {

QString Run::title() const {
  const QString name = QFileInfo(QDir::cleanPath(path)).fileName();
  return name.isEmpty() || name == "." ? QDir(path).dirName() : name;
}

std::uint64_t Run::slices() const {
  std::uint64_t count = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (std::size_t t = 0; t < ranks[r].own_tracks; ++t) count += trace.ranks[r].tracks[t].slices.size();
  }
  return count;
}

double Run::clock_error_ns() const {
  double error = 0;
  for (const auto& rank : trace.ranks) error = std::max(error, rank.clock_error_ns);
  return error;
}

namespace {

CounterGraph graph_of(const analysis::Samples& samples) {
  CounterGraph graph;
  graph.curve = analysis::curve_of(samples);
  const auto& values = graph.curve.value;
  if (values.empty()) return {};
  graph.ranges = analysis::ValueRanges(values);
  const auto whole = graph.ranges.over(values, 0, values.size());
  if (whole.high <= 0) return {};
  graph.top = samples.unit == "%" ? std::max(100.0, whole.high) : whole.high;
  return graph;
}

}  // namespace

std::optional<analysis::ValueRanges::Range> CounterGraph::between(double begin_ns, double end_ns) const {
  const auto& times = curve.time_ns;
  if (times.empty() || end_ns < double(times.front()) || begin_ns > double(times.back())) return std::nullopt;
  const auto starts_by = [&](double time) {  // how many values begin by then
    return static_cast<std::size_t>(
        std::partition_point(times.begin(), times.end(), [&](std::int64_t start) { return double(start) <= time; }) -
        times.begin());
  };
  const std::size_t begin = std::max<std::size_t>(starts_by(begin_ns), 1) - 1;
  return ranges.over(curve.value, begin, std::max(starts_by(end_ns), begin + 1));
}

std::shared_ptr<const Run> index_run(QString path, analysis::Trace trace, const analysis::Progress& progress) {
  auto run = std::make_shared<Run>();
  run->path = std::move(path);
  run->trace = std::move(trace);
  auto& ranks = run->trace.ranks;
  run->ranks.resize(ranks.size());
  bool first = true;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    RankIndex& index = run->ranks[r];
    index.phases = analysis::phases_of(run->trace, ranks[r]);
    index.totals = analysis::PhaseTotals(index.phases.intervals);
    index.iterations = analysis::iterations_of(run->trace, ranks[r], index.phases);
    index.losses = analysis::main_thread_losses(ranks[r]);
    index.own_tracks = ranks[r].tracks.size();
    for (std::size_t t = 0; t < index.own_tracks; ++t) {
      if (ranks[r].tracks[t].kind != analysis::TrackKind::thread) continue;
      analysis::Track row = analysis::mpi_row(run->trace, ranks[r].tracks[t]).track;
      if (row.slices.size() > 0) ranks[r].tracks.push_back(std::move(row));
    }
    for (const auto& track : ranks[r].tracks) {
      index.slices.emplace_back(track.slices);
      index.marks.emplace_back(track.marks);
      index.graphs.push_back(graph_of(track.samples));
    }
    const auto begin = static_cast<double>(ranks[r].start_ns), end = static_cast<double>(ranks[r].end_ns);
    run->begin_ns = first ? begin : std::min(run->begin_ns, begin);
    run->end_ns = first ? end : std::max(run->end_ns, end);
    first = false;
    if (progress && !progress(0.9 + 0.1 * static_cast<double>(r + 1) / static_cast<double>(ranks.size()))) {
      throw Error(run->path.toStdString() + ": loading was cancelled");
    }
  }
  return run;
}

std::shared_ptr<const Run> open_run(const QString& path, const analysis::Progress& progress) {
  analysis::Progress reading;
  if (progress) reading = [&](double share) { return progress(0.9 * share); };
  return index_run(path, analysis::load_run(path.toStdString(), reading), progress);
}

}  // namespace paceline::viewer
