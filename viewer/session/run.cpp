#include "viewer/session/run.h"

#include <QDir>
#include <QFileInfo>
#include <QSet>
#include <algorithm>

#include "analysis/trace/parallel.h"
#include "analysis/trace/progress.h"

namespace paceline::viewer {

QString Run::title() const {
  const QString name = QFileInfo(QDir::cleanPath(path)).fileName();
  return name.isEmpty() || name == "." ? QDir(path).dirName() : name;
}

QString Run::ranks_text() const {
  return QString("%1 %2").arg(trace.ranks.size()).arg(trace.ranks.size() == 1 ? "rank" : "ranks");
}

namespace run_index {

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

// How deep the MPI calls of a thread are nested, other slices left out; 0 if it made none.
unsigned mpi_depths(const analysis::Trace& trace, const analysis::Track& track) {
  if (track.kind != analysis::TrackKind::thread) return 0;
  const std::vector<bool> calls = mpi_kinds(trace);
  const analysis::Slices& slices = track.slices;
  std::vector<std::int64_t> open_ends;
  std::size_t deepest = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (!calls[slices.kind[i]]) continue;
    while (!open_ends.empty() && open_ends.back() <= slices.start_ns[i]) open_ends.pop_back();
    open_ends.push_back(slices.end_ns(i));
    deepest = std::max(deepest, open_ends.size());
  }
  return static_cast<unsigned>(deepest);
}

void fill(RankIndex& index, const analysis::PhaseTable& table, const analysis::Rank& rank) {
  const analysis::Trace& trace = table.trace();
  index.phases.emplace(table, rank);
  index.iterations = analysis::iterations_of(table, rank);
  if (!index.iterations.empty()) {
    analysis::IterationPhases phases(index.iterations);
    analysis::each_phase_interval(table, rank, [&](const auto& interval) { phases.add(interval); });
  }
  index.losses = analysis::main_thread_losses(rank);
  for (std::size_t t = 0; t < rank.tracks.size(); ++t) {
    index.graphs.push_back(graph_of(rank.tracks[t].samples));
    if (const unsigned depths = mpi_depths(trace, rank.tracks[t]); depths > 0) index.mpi_threads.push_back({t, depths});
  }
}

}  // namespace run_index

std::vector<bool> mpi_kinds(const analysis::Trace& trace) {
  const auto mpi = trace.names.find("mpi");
  std::vector<bool> wanted;
  for (const analysis::Kind& kind : trace.kinds) wanted.push_back(mpi != 0 && kind.domain == mpi);
  return wanted;
}

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
  run->phase_table.emplace(run->trace);
  const auto& ranks = run->trace.ranks;
  run->ranks.resize(ranks.size());
  QSet<QString> known_hosts;
  for (const analysis::Rank& rank : ranks) {
    const auto begin = static_cast<double>(rank.start_ns), end = static_cast<double>(rank.end_ns);
    const bool first = &rank == &ranks.front();
    run->begin_ns = first ? begin : std::min(run->begin_ns, begin);
    run->end_ns = first ? end : std::max(run->end_ns, end);
    run->clock_error_ns = std::max(run->clock_error_ns, rank.clock_error_ns);
    for (const auto& track : rank.tracks) run->slices += track.slices.size();
    const QString host = QString::fromStdString(rank.host);
    if (host.isEmpty() || known_hosts.contains(host)) continue;
    known_hosts.insert(host);
    run->hosts << host;
  }
  analysis::Progress indexing;
  if (progress) indexing = [&](double share) { return progress(0.9 + 0.1 * share); };
  analysis::ProgressCounter done(indexing, ranks.size());
  analysis::parallel_for(ranks.size(), [&](std::size_t r) {
    run_index::fill(run->ranks[r], *run->phase_table, ranks[r]);
    done.add(1);
  });
  return run;
}

std::shared_ptr<const Run> open_run(const QString& path, const analysis::Progress& progress) {
  analysis::Progress reading;
  if (progress) reading = [&](double share) { return progress(0.9 * share); };
  return index_run(path, analysis::load_run(path.toStdString(), reading), progress);
}

namespace run_index {

QString text_of(const Run& run, analysis::NameId name) { return QString::fromStdString(run.trace.names[name]); }

}  // namespace run_index

QString slice_title(const Run& run, const SliceRef& ref) {
  QString title = run_index::text_of(run, kind_of(run, ref).name);
  if (title.isEmpty()) title = "(no name)";
  if (ref.mark || category_of(run, ref) != "iteration") return title;
  const auto number = slices_of(run, ref).number(ref.slice, run.trace.names.find("payload"));
  return number ? QString("%1 %2").arg(title).arg(*number, 0, 'f', 0) : title;
}

QString domain_of(const Run& run, const SliceRef& ref) { return run_index::text_of(run, kind_of(run, ref).domain); }

QString category_of(const Run& run, const SliceRef& ref) { return run_index::text_of(run, kind_of(run, ref).category); }

QString value_text(const Run& run, const analysis::Argument& argument) {
  return argument.is_text() ? run_index::text_of(run, argument.text())
                            : QString::fromStdString(analysis::number_text(argument));
}

}  // namespace paceline::viewer
