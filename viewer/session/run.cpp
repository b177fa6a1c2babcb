// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/run.h"

#include <QDir>
#include <QFileInfo>
#include <QLocale>
#include <QSet>
#include <algorithm>
#include <cmath>

#include "analysis/clocks/alignment.h"
#include "analysis/text/numbers.h"
#include "analysis/trace/parallel.h"
#include "analysis/trace/progress.h"
#include "analysis/trace/stack_frames.h"
#include "analysis/trace/state_cursor.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {

QString plural_text(std::size_t count, const char* one, const char* many) {
  return QString::fromStdString(analysis::plural(count, one, many));
}

QString Run::title() const {
  const QString name = QFileInfo(QDir::cleanPath(path)).fileName();
  return name.isEmpty() || name == "." ? QDir(path).dirName() : name;
}

QString Run::ranks_text() const { return plural_text(trace.ranks.size(), "rank", "ranks"); }

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

std::vector<analysis::KindId> kinds_of(const analysis::Track& track, std::vector<bool>& seen) {
  std::vector<analysis::KindId> kinds;
  for (const analysis::KindId kind : track.slices.kind) {
    if (seen[kind]) continue;
    seen[kind] = true;
    kinds.push_back(kind);
  }
  for (const analysis::KindId kind : kinds) seen[kind] = false;
  return kinds;
}

void fill(RankIndex& index, const analysis::RunIndex& run, std::size_t r) {
  const analysis::Rank& rank = run.trace().ranks[r];
  index.phases.emplace(run.phases(), rank, run.exposed(r));
  index.unrecorded = unrecorded_of(analysis::main_thread_losses(rank));
  index.incomplete = rank.damaged || !index.unrecorded.empty();
  for (const analysis::Gap& gap : rank.gaps) {
    if (!gap.lost) index.unrecorded.push_back({gap.start_ns, gap.end_ns, QString::fromStdString(gap.reason)});
  }
  std::ranges::stable_sort(index.unrecorded, {}, &Unrecorded::start_ns);
  std::vector<bool> seen(run.trace().kinds.size());
  for (const analysis::Track& track : rank.tracks) {
    index.graphs.push_back(graph_of(track.samples));
    index.kinds.push_back(kinds_of(track, seen));
    index.few_states.push_back(analysis::each_nth(track.states, states_step));
  }
}

}  // namespace run_index

QString loss_text(const analysis::LostInterval& loss) {
  if (loss.cause == "damage") return "damaged in the file";
  if (loss.events == 0) return "events lost";
  return plural_text(loss.events, "event", "events") + " lost";
}

std::vector<Unrecorded> unrecorded_of(const std::vector<analysis::LostInterval>& losses) {
  std::vector<Unrecorded> unrecorded;
  for (const auto& loss : losses) unrecorded.push_back({loss.start_ns, loss.end_ns, loss_text(loss)});
  return unrecorded;
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
  run->index.emplace(run->trace);
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
  const analysis::Progress indexing = progress.from_to(0.9, 1);
  analysis::ProgressCounter done(indexing, ranks.size());
  analysis::parallel_for(ranks.size(), [&](std::size_t r) {
    run_index::fill(run->ranks[r], *run->index, r);
    done.add(1);
  });
  run->iterations = run->index->run_iterations();
  std::ranges::stable_sort(run->iterations, {}, &RunIteration::start_ns);
  return run;
}

std::shared_ptr<const Run> open_run(const QString& path, const analysis::Progress& progress,
                                    const analysis::MergeChoices& choices) {
  analysis::RunPaths paths(path.toStdString());
  paths.processes = choices.processes;
  return index_run(path, analysis::load_run(paths, choices.clock, progress.from_to(0, 0.9)), progress);
}

QString clock_error_text(const Run& run) {
  const auto& ranks = run.trace.ranks;
  if (ranks.size() < 2 || run.clock_error_ns <= 0) return {};
  // Other tools' files do not hold a bound.
  const bool foreign = std::ranges::any_of(ranks, [](const analysis::Rank& rank) { return rank.format != "pace"; });
  if (foreign && run.clock_error_ns >= analysis::unset_utc_error_ns) return "not known";
  return "at most " + duration_text(std::llround(run.clock_error_ns));
}

QString shown_name(const std::string& name, int longest) {
  QString text = QString::fromStdString(name);
  if (text.size() > longest) text = text.left(longest / 2) + QChar(0x2026) + text.right(longest / 2 - 1);
  bool right_to_left = false;
  for (QChar& c : text) {
    if (c.category() == QChar::Other_Control) c = ' ';
    const auto direction = c.direction();
    right_to_left |=
        direction == QChar::DirR || direction == QChar::DirAL || (c >= QChar(0x202a) && c <= QChar(0x202e));
  }
  return right_to_left ? QChar(0x2068) + text + QChar(0x2069) : text;  // first strong isolate
}

QString frame_text(const analysis::Trace& trace, analysis::FrameId id) {
  const analysis::Frame& frame = trace.stacks[id];
  const QString function = shown_name(trace.names[frame.function]);
  if (frame.file == 0) return function;
  QString file = shown_name(trace.names[frame.file]);
  // A system call shows the whole path of its file. Of a source file, the last part of the path is enough.
  if (analysis::system_call(trace.names[frame.function]).empty()) file = file.section('/', -1);
  if (frame.line > 0) file += QString(":%1").arg(frame.line);
  return QString("%1 (%2)").arg(function, file);
}

const analysis::Iteration* iteration_of(const Run& run, const SliceRef& ref) {
  if (ref.mark || !track_of(run, ref).main) return nullptr;
  const auto& slices = slices_of(run, ref);
  if (!run.index->phases().iteration(slices.kind[ref.slice])) return nullptr;
  const std::int64_t start = slices.start_ns[ref.slice];
  const auto* iteration = analysis::iteration_at(run.index->iterations(ref.rank), start);
  const bool same =
      iteration != nullptr && iteration->start_ns == start && iteration->duration_ns == slices.duration_ns[ref.slice];
  return same ? iteration : nullptr;
}

QString slice_title(const Run& run, const SliceRef& ref) {
  const std::string& name = run.trace.names[kind_of(run, ref).name];
  const QString title = name.empty() ? QString("(no name)") : shown_name(name);
  const analysis::Iteration* iteration = iteration_of(run, ref);
  const bool numbered = !name.empty() && name.back() >= '0' && name.back() <= '9';
  return iteration != nullptr && !numbered ? QString("%1 %2").arg(title).arg(iteration->number) : title;
}

QString domain_of(const Run& run, const SliceRef& ref) { return shown_name(run.trace.names[kind_of(run, ref).domain]); }

QString category_of(const Run& run, const SliceRef& ref) {
  return shown_name(run.trace.names[kind_of(run, ref).category]);
}

QString value_text(const Run& run, const analysis::Argument& argument) {
  if (argument.is_text()) return shown_name(run.trace.names[argument.text()], 1000);
  if (run.trace.names[argument.key] != "bytes") return QString::fromStdString(analysis::number_text(argument));
  return QLocale(QLocale::English).toString(qulonglong{argument.whole()}) + " B";
}

QString slice_text(const Run& run, const SliceRef& slice) {
  return QString("%1, %2, rank %3, %4")
      .arg(slice_title(run, slice), duration_text(slices_of(run, slice).duration_ns[slice.slice]))
      .arg(run.trace.ranks[slice.rank].rank)
      .arg(shown_name(track_of(run, slice).label));
}

}  // namespace paceline::viewer
