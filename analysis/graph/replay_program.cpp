// SPDX-License-Identifier: Apache-2.0
#include "analysis/graph/replay_program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "analysis/communication/blocked_time.h"
#include "analysis/graph/track_phases.h"
#include "analysis/trace/parallel.h"

namespace paceline::analysis {
namespace replay_building {

constexpr double not_observed = -1;
constexpr double golden_ratio = 0.6180339887498949;
constexpr double gradient_share = 0.002;  // of the bytes of an iteration, from which a collective carries gradients
constexpr std::uint64_t least_gradient = 1024;  // bytes

// A synchronisation point on a track: the track comes to it at begin_ns and leaves it at end_ns.
struct Point {
  std::int64_t begin_ns = 0, end_ns = 0;
  int order = 0;  // of points with one begin
  ReplayItem item;
};
// A wait that ended at once comes before the arrival that it allowed.
enum Order : int { iteration_ends, iteration_begins, gradients, causes, short_waits, arrives, waits };

class Building {
 public:
  Building(const RunIndex& index, const DependencyGraph& graph, const std::vector<std::string>& patterns)
      : index_(index), graph_(graph), patterns_(patterns), points_(graph.tracks.size()) {}

  ReplayProgram run() {
    out_.ranks = index_.trace().ranks.size();
    for (const Rank& rank : index_.trace().ranks) out_.rank_numbers.push_back(rank.rank);
    add_iterations();
    add_collectives();
    add_edges();
    add_gradients();
    add_groups();
    add_ends_of_streams();
    out_.tracks.resize(graph_.tracks.size());
    parallel_for(points_.size(), [&](std::size_t t) { add_items(static_cast<GraphTrack>(t)); });
    out_.draws = draw_transfers(out_);
    return std::move(out_);
  }

 private:
  void add_iterations() {
    std::map<std::int64_t, std::size_t> finished;
    for (std::size_t r = 0; r < out_.ranks; ++r) {
      for (const Iteration& iteration : index_.iterations(r)) finished[iteration.number] += iteration.finished;
    }
    std::map<std::int64_t, std::uint32_t> index;
    for (const auto& [number, ranks] : finished) {
      if (ranks < out_.ranks) continue;
      index[number] = static_cast<std::uint32_t>(out_.iterations.size());
      out_.iterations.push_back({number, 0, 0});
    }
    starts_.resize(out_.ranks);
    ends_.resize(out_.ranks);
    for (std::size_t r = 0; r < out_.ranks; ++r) {
      const GraphTrack main = graph_.main[r];
      if (main == no_track) continue;
      if (out_.iterations.empty()) {  // all of the thread's time belongs to the program
        const TrackDependencies& track = graph_.tracks[main];
        for (const std::int64_t time_ns : {track.start_ns, track.end_ns})
          add_point(main, time_ns, time_ns, gradients, {});
      }
      for (const Iteration& iteration : index_.iterations(r)) {
        const auto found = index.find(iteration.number);
        if (found == index.end() || !iteration.finished) continue;
        const std::int64_t start = iteration.start_ns, end = start + iteration.duration_ns;
        add_point(main, start, start, iteration_begins, {.what = ReplayItem::begin_iteration, .index = found->second});
        add_point(main, end, end, iteration_ends, {.what = ReplayItem::end_iteration, .index = found->second});
        starts_[r].emplace_back(start, static_cast<std::int32_t>(found->second));
        ends_[r].push_back(end);
        out_.iterations[found->second].recorded_ns +=
            static_cast<double>(iteration.duration_ns) / static_cast<double>(out_.ranks);
      }
      std::ranges::sort(starts_[r]);
      std::ranges::sort(ends_[r]);
    }
  }

  // The iteration that began last before this time on the rank; -1 before the first.
  std::int32_t iteration_at(std::uint32_t rank, std::int64_t time_ns) const {
    const auto& of = starts_[rank];
    const auto after = std::ranges::upper_bound(of, time_ns, {}, &std::pair<std::int64_t, std::int32_t>::first);
    return after == of.begin() ? -1 : std::prev(after)->second;
  }

  bool inside_iteration(std::uint32_t rank, std::int64_t time_ns) const {
    const auto after =
        std::ranges::upper_bound(starts_[rank], time_ns, {}, &std::pair<std::int64_t, std::int32_t>::first);
    const auto begun = static_cast<std::size_t>(after - starts_[rank].begin());
    return begun > 0 && time_ns < ends_[rank][begun - 1];
  }

  void add_point(GraphTrack track, std::int64_t begin, std::int64_t end, Order order, const ReplayItem& item) {
    points_[track].push_back({begin, end, order, item});
  }

  void add_collectives() {
    std::map<std::int32_t, double> bytes;  // of each iteration
    for (const GraphCollective& of : graph_.collectives) {
      const CollectiveArrival& first = of.arrivals.front();
      const std::int32_t iteration = iteration_at(graph_.tracks[first.track].rank, first.arrival_ns);
      bytes[iteration] += static_cast<double>(of.bytes);
      out_.collectives.push_back({.operation = of.from_range ? "allreduce" : of.operation,
                                  .bytes = of.bytes,
                                  .members = of.members,
                                  .iteration = iteration,
                                  .recorded_ns = static_cast<double>(of.end_ns - of.last_arrival_ns)});
    }
    std::map<std::tuple<std::string, std::uint32_t, std::uint64_t>, double> drawn;
    std::vector<std::vector<BlockedTime>> blocked(graph_.tracks.size());  // of main threads, in iterations
    for (std::uint32_t c = 0; c < graph_.collectives.size(); ++c) {
      const GraphCollective& of = graph_.collectives[c];
      ReplayCollective& to = out_.collectives[c];
      // Multiples of the golden ratio cover all quantiles evenly, however many there are.
      double& place = drawn.try_emplace({to.operation, to.members, to.bytes}, 0.5).first->second;
      to.quantile = place;
      place = std::fmod(place + golden_ratio, 1.0);
      const bool allreduces = of.from_range || plain_operation(of.operation).find("allreduce") != std::string::npos;
      to.gradient = allreduces && to.iteration >= 0 && of.bytes >= least_gradient &&
                    static_cast<double>(of.bytes) >= gradient_share * bytes[to.iteration];
      std::vector<double> shape;
      for (const CollectiveArrival& member : of.arrivals) {
        const bool early = member.until_ns < of.last_arrival_ns;
        shape.push_back(static_cast<double>(std::max<std::int64_t>(member.until_ns - of.last_arrival_ns, 0)) /
                        std::max(to.recorded_ns, 1.0));
        const std::int64_t arrival = outside_of_waits(member.track, member.arrival_ns, c);
        add_point(member.track, arrival, arrival, arrives, {.what = ReplayItem::arrive, .index = c});
        ++to.arrivals;
        // Who need not wait (the root of a broadcast) only takes the time of its own call.
        if (early) continue;
        add_point(member.track, member.blocked_from_ns, member.until_ns, waits,
                  {.what = ReplayItem::complete,
                   .index = c,
                   .member = static_cast<std::uint32_t>(&member - of.arrivals.data())});
        const TrackDependencies& track = graph_.tracks[member.track];
        const bool on_main = track.main && to.iteration >= 0 && inside_iteration(track.rank, member.blocked_from_ns);
        if (on_main) {
          blocked[member.track].push_back({member.blocked_from_ns, member.until_ns, of.last_arrival_ns, c});
        }
      }
      to.shape = std::make_shared<const std::vector<double>>(std::move(shape));
    }
    for (std::vector<BlockedTime>& of_track : blocked) {
      for (const BlockedTime& interval : outermost(std::move(of_track))) {
        out_.iterations[static_cast<std::size_t>(out_.collectives[interval.collective].iteration)].recorded_wait_ns +=
            static_cast<double>(interval.wait_ns()) / static_cast<double>(out_.ranks);
      }
    }
  }

  // A point inside a wait of its track belongs before the wait, so that a replay cannot block on itself.
  std::int64_t outside_of_waits(GraphTrack track, std::int64_t time_ns, std::uint32_t own = no_collective) const {
    const auto& waits = graph_.tracks[track].waits;
    auto after = std::ranges::upper_bound(waits, time_ns, {}, &Dependency::until_ns);
    for (int looked = 0; after != waits.end() && looked < 4; ++after, ++looked) {
      if (after->collective != own || own == no_collective) {
        if (after->from_ns < time_ns) time_ns = after->from_ns;
      }
    }
    return time_ns;
  }

  // Where a track waited for several causes, the last one released it. Of the others only an upper bound is known.
  static bool came_last(const std::vector<Dependency>& waits, std::size_t of) {
    const std::int64_t until_ns = waits[of].until_ns;
    std::size_t first = of, end = of + 1;
    while (first > 0 && waits[first - 1].until_ns == until_ns) --first;
    while (end < waits.size() && waits[end].until_ns == until_ns) ++end;
    for (std::size_t w = first; w < end; ++w) {
      if (waits[w].cause_ns > waits[of].cause_ns) return false;
    }
    return true;
  }

  void add_edges() {
    std::map<std::pair<DependencyKind, std::uint64_t>, double> drawn;
    std::size_t count = 0;
    for (const TrackDependencies& track : graph_.tracks) count += track.waits.size();
    out_.edges.reserve(count);
    for (GraphTrack t = 0; t < graph_.tracks.size(); ++t) {
      const std::vector<Dependency>& of_track = graph_.tracks[t].waits;
      for (std::size_t w = 0; w < of_track.size(); ++w) {
        const Dependency& wait = of_track[w];
        if (wait.collective != no_collective) continue;
        const auto index = static_cast<std::uint32_t>(out_.edges.size());
        const std::int64_t cause = outside_of_waits(wait.cause, wait.cause_ns);
        std::int64_t until = wait.until_ns;
        // A helper that began while the main thread waited was woken before and came late, which is its own time.
        const bool woken = wait.kind == DependencyKind::hand_over && wait.bytes == 0;
        if (woken) until = std::max(wait.from_ns, until - (wait.cause_ns - cause));
        // Where the cause had come before the track did, a message still has its transfer. Otherwise, the time until
        // the track went on is its own.
        const bool binding = cause > wait.from_ns, last = came_last(of_track, w);
        const bool observed = last && (binding || carries_bytes(wait.kind));
        if (!binding && !observed) until = wait.from_ns;
        double& place = drawn.try_emplace({wait.kind, wait.bytes}, 0.5).first->second;
        out_.edges.push_back(
            {.kind = wait.kind,
             .from = wait.cause,
             .to = t,
             .bytes = wait.bytes,
             .iteration = iteration_at(graph_.tracks[t].rank, wait.until_ns),
             .recorded_ns = observed ? static_cast<double>(until - std::max(cause, wait.from_ns)) : not_observed,
             .quantile = place,
             .binding = binding});
        place = std::fmod(place + golden_ratio, 1.0);
        add_point(wait.cause, cause, cause, causes, {.what = ReplayItem::cause, .index = index});
        ReplayItem item{.what = ReplayItem::wait, .index = index};
        if (wait.kind == DependencyKind::launch) item.iteration = iteration_at(graph_.tracks[t].rank, wait.cause_ns);
        add_point(t, wait.from_ns, until, until > wait.from_ns ? waits : short_waits, item);
      }
    }
  }

  // The ends of the main threads' ranges of category "layer" with a payload, which is the size of the layer's gradient.
  void add_gradients() {
    const Trace& trace = index_.trace();
    const NameId layer = trace.names.find("layer"), payload = trace.names.find("payload");
    if (layer == 0 || payload == 0) return;
    parallel_for(graph_.main.size(), [&](std::size_t r) {
      const GraphTrack main = graph_.main[r];
      if (main == no_track) return;
      const Slices& slices = trace.ranks[r].tracks[graph_.tracks[main].track].slices;
      for (std::size_t i = 0; i < slices.size(); ++i) {
        if (trace.kind_of(slices, i).category != layer) continue;
        const auto bytes = slices.argument(i, payload);
        if (!bytes || bytes->whole() == 0) continue;
        const std::int64_t end = slices.end_ns(i);
        add_point(main, end, end, gradients,
                  {.what = ReplayItem::gradient, .index = static_cast<std::uint32_t>(bytes->whole())});
      }
    });
  }

  // Work for which nothing waits.
  void add_ends_of_streams() {
    for (GraphTrack t = 0; t < points_.size(); ++t) {
      const Track& track = index_.trace().ranks[graph_.tracks[t].rank].tracks[graph_.tracks[t].track];
      if (track.kind != TrackKind::stream || points_[t].empty()) continue;
      const std::int64_t end_ns = track.slices.end_ns(track.slices.size() - 1);
      add_point(t, end_ns, end_ns, waits, {});
    }
  }

  // Of each kind: which pattern its name fits, from 1; 0: none. Empty where no kind fits any.
  void add_groups() {
    const Trace& trace = index_.trace();
    bool any = false;
    for (const Kind& kind : trace.kinds) {
      const std::string& name = trace.names[kind.name];
      const auto fits = [&](const std::string& pattern) { return matches(pattern, name); };
      const auto found = std::ranges::find_if(patterns_, fits);
      groups_.push_back(found == patterns_.end() ? 0 : static_cast<std::uint8_t>(found - patterns_.begin() + 1));
      any = any || groups_.back() != 0;
    }
    if (!any) groups_.clear();
  }

  // The stretches of a track inside ranges and kernels of the chosen names, one after the other.
  class Matched {
   public:
    Matched(const Slices& slices, const std::vector<std::uint8_t>& groups) : slices_(slices), groups_(groups) {
      next();
    }
    bool ended() const { return group_ == 0; }
    std::int64_t start_ns() const { return start_ns_; }
    std::int64_t end_ns() const { return end_ns_; }
    std::uint8_t group() const { return group_; }
    void next() {
      group_ = 0;
      for (; !groups_.empty() && slice_ < slices_.size() && group_ == 0; ++slice_) {
        const std::uint8_t of = groups_[slices_.kind[slice_]];
        if (of == 0 || slices_.start_ns[slice_] < end_ns_) continue;  // inside the last one
        start_ns_ = slices_.start_ns[slice_];
        end_ns_ = slices_.end_ns(slice_);
        group_ = of;
      }
    }

   private:
    const Slices& slices_;
    const std::vector<std::uint8_t>& groups_;
    std::size_t slice_ = 0;
    std::int64_t start_ns_ = 0, end_ns_ = std::numeric_limits<std::int64_t>::min();
    std::uint8_t group_ = 0;
  };

  // Adds work to the stretch of its phase since the last synchronisation point, which has one item for each group: a
  // million layers in turn would make a million items.
  static void add_to_stretch(std::vector<ReplayItem>& items, const ReplayItem& item) {
    for (auto at = items.rbegin(); at != items.rend(); ++at) {
      if (at->what != ReplayItem::work || at->phase != item.phase || at->iteration != item.iteration) break;
      if (at->group != item.group) continue;
      at->ns += item.ns;
      return;
    }
    items.push_back(item);
  }

  void add_items(GraphTrack t) {
    auto& points = points_[t];
    std::ranges::stable_sort(points, [](const Point& a, const Point& b) {
      return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.order < b.order;
    });
    ReplayTrack& track = out_.tracks[t];
    track.rank = graph_.tracks[t].rank;
    track.main = graph_.tracks[t].main;
    track.stream = index_.trace().ranks[track.rank].tracks[graph_.tracks[t].track].kind == TrackKind::stream;
    if (points.empty()) return;
    std::vector<PhaseInterval> phases;
    each_phase_of(index_, graph_.tracks[t], points.back().begin_ns,
                  [&](const PhaseInterval& interval) { phases.push_back(interval); });
    Matched match(index_.trace().ranks[track.rank].tracks[graph_.tracks[t].track].slices, groups_);
    std::vector<ReplayItem> items;
    items.reserve(2 * (points.size() + phases.size()));
    const auto& starts = starts_[track.rank];
    std::size_t phase = 0, begun = 0;  // `begun`: iterations of the rank that begin by `now`
    std::int64_t now = points.front().begin_ns;
    std::int32_t launched_in = -1;  // the iteration of the launch of a stream's work
    const auto iteration_of = [&](std::int64_t time_ns) {
      return launched_in >= 0 ? launched_in : iteration_at(track.rank, time_ns);
    };
    const auto add_work = [&](std::int64_t until) {
      while (now < until) {
        while (phase < phases.size() && phases[phase].end_ns <= now) ++phase;
        while (!match.ended() && match.end_ns() <= now) match.next();
        while (begun < starts.size() && starts[begun].first <= now) ++begun;
        std::int64_t end = until;
        ReplayItem item{.iteration = launched_in >= 0 ? launched_in : begun > 0 ? starts[begun - 1].second : -1};
        if (phase < phases.size()) {
          const bool inside = phases[phase].start_ns <= now;
          if (inside) item.phase = phases[phase].phase;
          end = std::min(end, inside ? phases[phase].end_ns : phases[phase].start_ns);
        }
        if (!match.ended()) {
          const bool inside = match.start_ns() <= now;
          if (inside) item.group = match.group();
          end = std::min(end, inside ? match.end_ns() : match.start_ns());
        }
        item.ns = static_cast<double>(end - now);
        now = end;
        add_to_stretch(items, item);
      }
    };
    for (const Point& point : points) {
      add_work(point.begin_ns);
      ReplayItem item = point.item;
      if (item.iteration >= 0) launched_in = item.iteration;
      item.iteration = iteration_of(point.begin_ns);
      while (phase < phases.size() && phases[phase].end_ns <= point.begin_ns) ++phase;
      if (phase < phases.size() && phases[phase].start_ns <= point.begin_ns) item.phase = phases[phase].phase;
      items.push_back(item);
      now = std::max(now, point.end_ns);
    }
    points = {};
    track.items = Shared(std::move(items));
  }

  const RunIndex& index_;
  const DependencyGraph& graph_;
  const std::vector<std::string>& patterns_;
  std::vector<std::vector<Point>> points_;                                  // of each track
  std::vector<std::uint8_t> groups_;                                        // of each kind
  std::vector<std::vector<std::pair<std::int64_t, std::int32_t>>> starts_;  // of the iterations of each rank
  std::vector<std::vector<std::int64_t>> ends_;                             // likewise
  ReplayProgram out_;
};

}  // namespace replay_building

ReplayProgram replay_program(const RunIndex& index, const DependencyGraph& graph,
                             const std::vector<std::string>& patterns) {
  return replay_building::Building(index, graph, patterns).run();
}

}  // namespace paceline::analysis
