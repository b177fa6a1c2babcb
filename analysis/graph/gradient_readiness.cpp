// SPDX-License-Identifier: Apache-2.0
// Which tracks compute and average gradients, and when parts of the gradient are ready.
#include <algorithm>
#include <map>

#include "analysis/graph/gradient_schedule.h"

namespace paceline::analysis {
namespace readiness_parts {

constexpr double almost_all = 0.999;  // of backward

double backward_ns(const ReplayTrack& track) {
  double sum = 0;
  for (const ReplayItem& item : *track.items) {
    if (item.what == ReplayItem::work && item.phase == Phase::backward && item.iteration >= 0) sum += item.ns;
  }
  return sum;
}

// What became ready in one iteration on one rank: the bytes of each part, and the work of backward until then in ns.
struct Parts {
  std::vector<ReadyPoint> layers, buckets;
};

// The parts of one rank. Backward may run on another track than the thread that announces its results: then the work
// that the thread launched last before has to end first.
class RankParts {
 public:
  RankParts(const ReplayProgram& program, const GradientTracks& tracks, std::size_t rank)
      : program_(program), compute_(tracks.compute[rank]), done_after_(program.edges.size(), unknown) {
    if (!compute_) return;
    for (const ReplayItem& item : *program.tracks[*compute_].items) follow_compute(item);
    for (const std::size_t track : tracks.averaging) {
      if (program.tracks[track].rank == rank) find_buckets(*program.tracks[track].items);
    }
    if (tracks.streams) find_buckets(*program.tracks[*compute_].items);
    for (std::size_t t = 0; t < program.tracks.size(); ++t) {
      if (program.tracks[t].rank == rank && !program.tracks[t].stream) follow_thread(t);
    }
  }

  const std::map<std::int32_t, Parts>& parts() const { return parts_; }
  double backward_of(std::int32_t iteration) const {
    const auto found = backward_.find(iteration);
    return found == backward_.end() ? 0 : found->second;
  }

 private:
  static constexpr double unknown = -1;

  // Finds how much of backward is done when the work of a launch has ended.
  void follow_compute(const ReplayItem& item) {
    if (backward_ns_ == nullptr || item.iteration != iteration_) backward_ns_ = &backward_[item.iteration];
    iteration_ = item.iteration;
    if (item.what == ReplayItem::wait && program_.edges[item.index].kind == DependencyKind::launch) {
      launch_ = item.index;
      done_after_[item.index] = *backward_ns_;
    }
    if (item.what != ReplayItem::work) return;
    if (item.phase == Phase::backward) *backward_ns_ += item.ns;
    if (launch_) done_after_[*launch_] = *backward_ns_;
  }

  // The edges that hand a bucket to an averaging track: an announcement with bytes, or the launch of the collective.
  void find_buckets(const std::vector<ReplayItem>& items) {
    std::optional<std::uint32_t> launch;
    for (const ReplayItem& item : items) {
      if (item.what == ReplayItem::wait) {
        const ReplayEdge& edge = program_.edges[item.index];
        if (edge.kind == DependencyKind::hand_over && edge.bytes > 0) {
          buckets_[item.index] = static_cast<double>(edge.bytes);
        }
        if (edge.kind == DependencyKind::launch) launch = item.index;
      }
      const bool launched = launch && item.what == ReplayItem::arrive && averages_gradient(program_, item);
      if (launched) buckets_[*launch] += static_cast<double>(program_.collectives[item.index].bytes);
    }
  }

  void follow_thread(std::size_t t) {
    double done = 0;
    std::int32_t iteration = -1;
    Parts* of_iteration = nullptr;
    for (const ReplayItem& item : *program_.tracks[t].items) {
      if (item.iteration != iteration) done = 0;
      if (of_iteration == nullptr || item.iteration != iteration) of_iteration = &parts_[item.iteration];
      iteration = item.iteration;
      Parts& parts = *of_iteration;
      const bool forward = item.what == ReplayItem::work && item.phase == Phase::forward;
      if (forward) parts.layers.clear();  // the gradient is complete in the last of several passes
      if (t == *compute_ && item.what == ReplayItem::work && item.phase == Phase::backward) done += item.ns;
      if (item.what == ReplayItem::gradient) parts.layers.push_back({static_cast<double>(item.index), done});
      if (item.what != ReplayItem::cause) continue;
      if (const auto bucket = buckets_.find(item.index); bucket != buckets_.end()) {
        parts.buckets.push_back({bucket->second, done});
      } else if (done_after_[item.index] >= 0) {
        done = std::max(done, done_after_[item.index]);
      }
    }
  }

  const ReplayProgram& program_;
  const std::optional<std::size_t> compute_;
  std::vector<double> done_after_;           // by edge: the work of backward in ns; `unknown` for other edges
  std::optional<std::uint32_t> launch_;      // of the work that runs
  std::map<std::int32_t, double> backward_;  // by iteration, in ns
  std::int32_t iteration_ = -1;              // that follow_compute() is in
  double* backward_ns_ = nullptr;            // of it
  std::map<std::uint32_t, double> buckets_;  // bytes by edge
  std::map<std::int32_t, Parts> parts_;      // by iteration
};

// Means over the ranks and iterations of the parts at each place.
class Means {
 public:
  void add(const std::vector<ReadyPoint>& parts, double backward_ns) {
    double all = 0, bytes = 0;
    for (const ReadyPoint& part : parts) all += part.bytes;
    if (all <= 0 || backward_ns <= 0) return;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      bytes += parts[k].bytes;
      auto& [sum, count] = sums_[k];
      sum.bytes += bytes / all;
      sum.backward += parts[k].backward / backward_ns;
      ++count;
    }
  }
  std::vector<ReadyPoint> points() const {
    std::vector<ReadyPoint> out;
    for (const auto& [place, sum] : sums_)
      out.push_back({sum.first.bytes / sum.second, sum.first.backward / sum.second});
    return out;
  }

 private:
  std::map<std::size_t, std::pair<ReadyPoint, int>> sums_;
};

// Recorded buckets are evidence of overlap only if the first one was ready before the end of backward: in the first
// iteration buckets are made after it.
bool beside_backward(const std::vector<ReadyPoint>& buckets, double backward_ns) {
  return !buckets.empty() && buckets.front().backward < almost_all * backward_ns;
}

}  // namespace readiness_parts

bool averages_gradient(const ReplayProgram& program, const ReplayItem& item) {
  return (item.what == ReplayItem::arrive || item.what == ReplayItem::complete) &&
         program.collectives[item.index].gradient;
}

GradientTracks gradient_tracks(const ReplayProgram& program) {
  GradientTracks out;
  std::vector<std::optional<std::size_t>> main(program.ranks), stream(program.ranks);
  std::vector<double> most(program.ranks, 0);
  std::vector<std::size_t> average;
  for (std::size_t t = 0; t < program.tracks.size(); ++t) {
    const ReplayTrack& track = program.tracks[t];
    if (track.main) main[track.rank] = t;
    const bool averages =
        std::ranges::any_of(*track.items, [&](const ReplayItem& item) { return averages_gradient(program, item); });
    if (averages && !track.main) average.push_back(t);
    out.streams = out.streams || (averages && track.stream);
    if (!track.stream) continue;
    const double backward = readiness_parts::backward_ns(track);
    if (backward <= most[track.rank]) continue;
    most[track.rank] = backward;
    stream[track.rank] = t;
  }
  out.compute = out.streams ? stream : main;
  for (const std::size_t t : average) {
    if (out.compute[program.tracks[t].rank] != t) out.averaging.push_back(t);
  }
  return out;
}

std::optional<GradientSchedule> recorded_schedule(const ReplayProgram& program) {
  using namespace readiness_parts;
  const auto pieces = std::ranges::count_if(program.collectives, [](const auto& of) { return of.gradient; });
  const GradientTracks tracks = gradient_tracks(program);
  const auto of_torch = [](const auto& of) { return of.gradient && of.operation.find(':') != std::string::npos; };
  if (pieces == 0 || std::ranges::any_of(program.collectives, of_torch)) return std::nullopt;
  if (tracks.streams && std::ranges::any_of(tracks.compute, [](const auto& of) { return !of; })) return std::nullopt;
  if (tracks.averaging.empty()) return GradientSchedule::blocking;
  std::size_t beside = 0, after = 0;  // iterations of ranks
  for (std::size_t rank = 0; rank < program.ranks; ++rank) {
    const RankParts of_rank(program, tracks, rank);
    for (const auto& [iteration, parts] : of_rank.parts()) {
      if (iteration < 1 || parts.buckets.empty()) continue;
      ++(beside_backward(parts.buckets, of_rank.backward_of(iteration)) ? beside : after);
    }
  }
  if (tracks.streams) return beside > after ? GradientSchedule::overlap : GradientSchedule::blocking;
  // With double buffering one piece of work is announced for each iteration, at its end.
  const bool one_each = pieces <= static_cast<std::ptrdiff_t>(program.iterations.size()) + 1;
  return one_each && beside == 0 ? GradientSchedule::double_buffering : GradientSchedule::overlap;
}

Readiness recorded_readiness(const ReplayProgram& program) {
  using namespace readiness_parts;
  const GradientTracks tracks = gradient_tracks(program);
  Means layers, buckets;
  for (std::size_t rank = 0; rank < program.ranks; ++rank) {
    const RankParts of_rank(program, tracks, rank);
    for (const auto& [iteration, parts] : of_rank.parts()) {
      if (iteration < 1) continue;
      const double backward = of_rank.backward_of(iteration);
      layers.add(parts.layers, backward);
      if (beside_backward(parts.buckets, backward)) buckets.add(parts.buckets, backward);
    }
  }
  if (Readiness ready{layers.points(), true}; !ready.points.empty()) return ready;
  return {buckets.points(), false};
}

}  // namespace paceline::analysis
