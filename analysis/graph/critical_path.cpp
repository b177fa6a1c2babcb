// SPDX-License-Identifier: Apache-2.0
#include "analysis/graph/critical_path.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "analysis/graph/track_phases.h"
#include "analysis/phases/iterations.h"
#include "analysis/phases/phase_walk.h"
#include "analysis/trace/innermost.h"
#include "analysis/trace/parallel.h"

namespace paceline::analysis {
namespace critical_path_parts {

constexpr std::size_t most_names = 50;
constexpr std::size_t communication = static_cast<std::size_t>(Phase::communication);

// A stretch of the path inside the window of an iteration.
struct Part {
  std::int64_t from_ns = 0, until_ns = 0;
  std::uint32_t window = 0;
  bool transfer = false;
  DependencyKind kind = DependencyKind::collective;
};

struct Ends {
  std::vector<std::int64_t> of_rank;  // the end of the last common iteration
};

// Finds the windows of the iterations that all ranks finished.
std::vector<PathIteration> windows_of(const RunIndex& index, Ends& ends) {
  const std::size_t ranks = index.trace().ranks.size();
  std::set<std::int64_t> numbers;
  std::vector<PathIteration> windows;
  for (const RunIteration& common : index.run_iterations()) {
    if (!common.finished) continue;
    numbers.insert(common.number);
    PathIteration window;
    window.number = common.number;
    window.start_ns =
        windows.empty() ? common.start_ns : std::max(common.start_ns, windows.back().start_ns + windows.back().wall_ns);
    window.wall_ns = common.end_ns - window.start_ns;
    window.work_ns.resize(ranks);
    if (window.wall_ns > 0) windows.push_back(std::move(window));
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    std::int64_t end = 0;
    for (const Iteration& iteration : index.iterations(r)) {
      if (iteration.finished && numbers.contains(iteration.number)) end = iteration.start_ns + iteration.duration_ns;
    }
    const std::int64_t last = windows.empty() ? 0 : windows.back().start_ns + windows.back().wall_ns;
    ends.of_rank.push_back(end == 0 ? last : end);
  }
  return windows;
}

// What the parts of one track add up to.
struct TrackSums {
  std::map<std::uint32_t, std::array<std::int64_t, phase_count>> window_phase_ns;
  std::vector<std::int64_t> kind_ns;  // by kind of the innermost slice; the last entry: outside of all
};

class Attribution {
 public:
  Attribution(const RunIndex& index, const DependencyGraph& graph, GraphTrack track, std::vector<Part> parts)
      : index_(index),
        of_(graph.tracks[track]),
        slices_(index.trace().ranks[of_.rank].tracks[of_.track].slices),
        parts_(std::move(parts)) {}

  TrackSums run() {
    std::ranges::sort(parts_, {}, &Part::from_ns);
    sums_.kind_ns.assign(index_.trace().kinds.size() + 1, 0);
    add_names();
    add_phases();
    return std::move(sums_);
  }

 private:
  // Calls give(part, ns) for what each part has in common with the stretch; stretches come in order.
  template <class Give>
  void overlap(std::size_t& next, std::int64_t from, std::int64_t until, Give&& give) const {
    while (next < parts_.size() && parts_[next].until_ns <= from) ++next;
    for (std::size_t p = next; p < parts_.size() && parts_[p].from_ns < until; ++p) {
      give(p, std::min(until, parts_[p].until_ns) - std::max(from, parts_[p].from_ns));
    }
  }

  void add_names() {
    std::size_t next = 0, ahead = 0;
    std::int64_t named = 0;
    const auto visit = [&](std::int64_t from, std::int64_t until, std::uint32_t slice) {
      overlap(next, from, until, [&](std::size_t, std::int64_t ns) {
        sums_.kind_ns[slices_.kind[slice]] += ns;
        named += ns;
      });
    };
    // Most slices of a track lie between two parts: the path is on another track then.
    const auto outside = [&](std::uint32_t slice) {
      while (ahead < parts_.size() && parts_[ahead].until_ns <= slices_.start_ns[slice]) ++ahead;
      return ahead == parts_.size() || slices_.end_ns(slice) <= parts_[ahead].from_ns;
    };
    each_innermost(slices_, parts_.back().until_ns, visit, outside);
    std::int64_t all = 0;
    for (const Part& part : parts_) all += part.until_ns - part.from_ns;
    sums_.kind_ns.back() += all - named;
  }

  void give(const Part& part, Phase phase, std::int64_t ns) {
    if (part.transfer) {
      const bool moves_data = part.kind == DependencyKind::collective || part.kind == DependencyKind::message ||
                              part.kind == DependencyKind::send;
      if (moves_data) phase = Phase::communication;
      if (part.kind == DependencyKind::launch) phase = Phase::launch;
    }
    sums_.window_phase_ns[part.window][static_cast<std::size_t>(phase)] += ns;
  }

  // Time without a phase (outside of slices, or a gap of the recording) is `other`.
  void add_phases() {
    std::size_t next = 0;
    std::vector<std::int64_t> given(parts_.size());
    each_phase_of(index_, of_, parts_.back().until_ns, [&](const PhaseInterval& interval) {
      overlap(next, interval.start_ns, interval.end_ns, [&](std::size_t p, std::int64_t ns) {
        give(parts_[p], interval.phase, ns);
        given[p] += ns;
      });
    });
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const std::int64_t rest = parts_[p].until_ns - parts_[p].from_ns - given[p];
      if (rest > 0) give(parts_[p], Phase::other, rest);
    }
  }

  const RunIndex& index_;
  const TrackDependencies& of_;
  const Slices& slices_;
  std::vector<Part> parts_;
  TrackSums sums_;
};

// Splits the path at the borders of the windows and drops the parts outside all windows.
std::vector<std::vector<Part>> parts_of(const std::vector<PathStretch>& path, const std::vector<PathIteration>& windows,
                                        std::size_t tracks) {
  std::vector<std::vector<Part>> parts(tracks);
  std::size_t last = windows.size();  // the path comes with the latest first
  for (const PathStretch& stretch : path) {
    while (last > 0 && windows[last - 1].start_ns >= stretch.until_ns) --last;
    for (std::size_t w = last; w-- > 0;) {
      const std::int64_t end = windows[w].start_ns + windows[w].wall_ns;
      if (end <= stretch.from_ns) break;
      const std::int64_t from = std::max(stretch.from_ns, windows[w].start_ns), until = std::min(stretch.until_ns, end);
      if (until > from) {
        parts[stretch.track].push_back({from, until, static_cast<std::uint32_t>(w), stretch.transfer, stretch.kind});
      }
    }
  }
  return parts;
}

void add_names(const Trace& trace, const std::vector<TrackSums>& sums, CriticalPath& path) {
  std::map<std::pair<NameId, NameId>, std::int64_t> by_name;
  for (const TrackSums& of : sums) {
    for (std::size_t kind = 0; kind < of.kind_ns.size(); ++kind) {
      if (of.kind_ns[kind] == 0) continue;
      const bool outside = kind + 1 == of.kind_ns.size();
      const Kind& known = trace.kinds[outside ? 0 : static_cast<KindId>(kind)];
      by_name[{known.domain, known.name}] += of.kind_ns[kind];
    }
  }
  for (const auto& [name, ns] : by_name) path.names.push_back({trace.names[name.second], trace.names[name.first], ns});
  std::ranges::stable_sort(path.names, std::greater(), &PathName::ns);
  if (path.names.size() > most_names) path.names.resize(most_names);
}

// The least float of each phase on one track, for each iteration.
using LeastFloats = std::vector<std::array<std::int64_t, phase_count>>;
constexpr std::int64_t no_float = std::numeric_limits<std::int64_t>::max() / 4;  // as total_floats() has it

void add_least(const RunIndex& index, const TrackDependencies& track, const std::vector<FloatStep>& steps,
               const std::vector<PathIteration>& iterations, LeastFloats& least) {
  std::size_t step = steps.size(), window = 0;  // the latest step is the first one
  const PathIteration& last = iterations.back();
  each_phase_of(index, track, last.start_ns + last.wall_ns, [&](const PhaseInterval& part) {
    const auto end_of = [&] { return iterations[window].start_ns + iterations[window].wall_ns; };
    while (window < iterations.size() && end_of() <= part.start_ns) ++window;
    if (window == iterations.size() || part.end_ns <= iterations[window].start_ns) return;
    while (step > 0 && steps[step - 1].time_ns <= part.start_ns) --step;
    std::int64_t& of_phase = least[window][static_cast<std::size_t>(part.phase)];
    // The work of a phase may grow by the float that holds where the phase begins and at each step inside it.
    for (std::size_t s = step; s > 0; --s) {
      of_phase = std::min(of_phase, steps[s - 1].float_ns);
      if (steps[s - 1].time_ns >= part.end_ns) break;
    }
  });
}

// The least float of a rank in each phase of an iteration, as a mean over the iterations. The work of streams and
// helper threads counts as well: a main thread that waits for a kernel has time to spare, and the phase of the kernel
// has not.
void add_slack(const RunIndex& index, const DependencyGraph& graph, const Ends& ends, CriticalPath& path) {
  const auto floats = total_floats(graph, ends.of_rank);
  path.slack.resize(graph.main.size());
  parallel_for(path.slack.size(), [&](std::size_t r) {
    if (graph.main[r] == no_track) return;
    LeastFloats least(path.iterations.size());
    for (auto& of_window : least) of_window.fill(no_float);
    for (GraphTrack t = 0; t < graph.tracks.size(); ++t) {
      if (graph.tracks[t].rank == r) add_least(index, graph.tracks[t], floats[t], path.iterations, least);
    }
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      std::int64_t sum = 0, seen = 0;
      for (const auto& of_window : least) {
        if (of_window[phase] >= no_float / 2) continue;
        sum += of_window[phase];
        ++seen;
      }
      if (seen > 0) path.slack[r].phase_ns[phase] = sum / seen;
    }
  });
}

}  // namespace critical_path_parts

std::int64_t CriticalPath::phase_ns(Phase phase) const {
  std::int64_t sum = 0;
  for (const auto& of_rank : rank_phase_ns) sum += of_rank[static_cast<std::size_t>(phase)];
  return sum;
}

std::int64_t CriticalPath::work_ns(std::size_t rank) const {
  const auto& of = rank_phase_ns[rank];
  return std::accumulate(of.begin(), of.end(), std::int64_t{0}) - of[critical_path_parts::communication];
}

std::optional<CriticalPath> critical_path(const RunIndex& index, const DependencyGraph& graph) {
  using namespace critical_path_parts;
  const Trace& trace = index.trace();
  CriticalPath path;
  Ends ends;
  path.iterations = windows_of(index, ends);
  if (path.iterations.empty()) return std::nullopt;
  const auto last = std::ranges::max_element(ends.of_rank);
  const GraphTrack track = graph.main[static_cast<std::size_t>(last - ends.of_rank.begin())];
  if (track == no_track) return std::nullopt;
  path.stretches = walk_back(graph, track, *last, path.iterations.front().start_ns);

  auto parts = parts_of(path.stretches, path.iterations, graph.tracks.size());
  std::vector<TrackSums> sums(graph.tracks.size());
  parallel_for(sums.size(), [&](std::size_t t) {
    if (!parts[t].empty()) sums[t] = Attribution(index, graph, static_cast<GraphTrack>(t), std::move(parts[t])).run();
  });
  path.rank_phase_ns.resize(trace.ranks.size());
  for (GraphTrack t = 0; t < sums.size(); ++t) {
    const std::uint32_t rank = graph.tracks[t].rank;
    for (const auto& [window, phases] : sums[t].window_phase_ns) {
      PathIteration& iteration = path.iterations[window];
      for (std::size_t phase = 0; phase < phase_count; ++phase) {
        path.rank_phase_ns[rank][phase] += phases[phase];
        iteration.phase_ns[phase] += phases[phase];
        if (phase != communication) iteration.work_ns[rank] += phases[phase];
      }
    }
  }
  for (const PathIteration& iteration : path.iterations) path.wall_ns += iteration.wall_ns;
  add_names(trace, sums, path);
  add_slack(index, graph, ends, path);
  return path;
}

}  // namespace paceline::analysis
