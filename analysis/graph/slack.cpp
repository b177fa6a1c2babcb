// SPDX-License-Identifier: Apache-2.0
// Total float (critical-path method): a sweep backwards in time over all synchronisation points.
#include <algorithm>
#include <limits>
#include <tuple>

#include "analysis/graph/critical_path.h"

namespace paceline::analysis {
namespace slack_parts {

struct Point {
  enum What : std::uint8_t { wait_end, arrival, cause };  // at equal times, effects before their causes going backwards
  std::int64_t time_ns = 0;
  What what = wait_end;
  GraphTrack track = 0;
  std::uint32_t index = 0;  // of the wait on its track, or of the collective
  GraphTrack waiter = 0;    // the track with the wait; no_track: of a collective
};

std::int64_t blocked_from(const DependencyGraph& graph, const Point& point) {
  for (const CollectiveArrival& member : graph.collectives[point.index].arrivals) {
    if (member.track == point.track) return member.blocked_from_ns;
  }
  return point.time_ns;
}

}  // namespace slack_parts

std::vector<std::vector<FloatStep>> total_floats(const DependencyGraph& graph, std::span<const std::int64_t> ends_ns) {
  using namespace slack_parts;
  constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::max() / 4;
  const std::int64_t end_ns = std::ranges::max(ends_ns);
  std::vector<Point> points;
  for (std::uint32_t c = 0; c < graph.collectives.size(); ++c) {
    for (const CollectiveArrival& member : graph.collectives[c].arrivals) {
      points.push_back({member.until_ns, Point::wait_end, member.track, c, no_track});
      points.push_back({member.arrival_ns, Point::arrival, member.track, c, no_track});
    }
  }
  std::vector<std::vector<std::int64_t>> after(graph.tracks.size());  // the float after each wait
  for (GraphTrack t = 0; t < graph.tracks.size(); ++t) {
    const auto& waits = graph.tracks[t].waits;
    after[t].resize(waits.size(), unknown);
    for (std::uint32_t w = 0; w < waits.size(); ++w) {
      if (waits[w].collective != no_collective) continue;
      points.push_back({waits[w].until_ns, Point::wait_end, t, w, t});
      points.push_back({waits[w].cause_ns, Point::cause, waits[w].cause, w, t});
    }
  }
  // Where a track goes from one collective into the next at one time, the later one comes first.
  const auto key = [](const Point& point) {
    const std::int64_t order = point.waiter == no_track ? std::int64_t{point.index} + 1 : 0;
    return std::tuple(-point.time_ns, -order, point.what);
  };
  std::ranges::sort(points, [&](const Point& a, const Point& b) { return key(a) < key(b); });
  std::vector<std::int64_t> now(graph.tracks.size(), unknown);
  std::vector<std::vector<FloatStep>> steps(graph.tracks.size());
  for (GraphTrack t = 0; t < graph.tracks.size(); ++t) {
    if (graph.tracks[t].main) now[t] = end_ns - ends_ns[graph.tracks[t].rank];
    steps[t].push_back({end_ns, now[t]});
  }
  const auto set = [&](GraphTrack track, std::int64_t time_ns, std::int64_t value) {
    if (now[track] == value) return;
    now[track] = value;
    steps[track].push_back({time_ns, value});
  };
  std::vector<std::int64_t> of_collective(graph.collectives.size(), unknown);
  for (const Point& point : points) {
    if (point.time_ns > end_ns) continue;
    if (point.waiter == no_track) {
      const GraphCollective& collective = graph.collectives[point.index];
      if (point.what == Point::wait_end) {
        of_collective[point.index] = std::min(of_collective[point.index], now[point.track]);
        // Work between a post and the wait for it may also take the time of the wait.
        set(point.track, point.time_ns, now[point.track] + point.time_ns - blocked_from(graph, point));
      } else {
        const std::int64_t room = collective.last_arrival_ns - point.time_ns + of_collective[point.index];
        set(point.track, point.time_ns, std::min(now[point.track], room));
      }
      continue;
    }
    const Dependency& wait = graph.tracks[point.waiter].waits[point.index];
    if (point.what == Point::wait_end) {
      after[point.waiter][point.index] = now[point.track];
      if (wait.binding()) set(point.track, point.time_ns, now[point.track] + wait.cause_ns - wait.from_ns);
    } else {
      const std::int64_t room =
          after[point.waiter][point.index] + std::max<std::int64_t>(wait.from_ns - wait.cause_ns, 0);
      set(point.track, point.time_ns, std::min(now[point.track], room));
    }
  }
  return steps;
}

}  // namespace paceline::analysis
