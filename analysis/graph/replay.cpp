// SPDX-License-Identifier: Apache-2.0
#include "analysis/graph/replay.h"

#include <algorithm>
#include <optional>

namespace paceline::analysis {
namespace replay_parts {

// Messages that the receiver (or of "send", the sender) waited for, and those that waited for it.
TransferKind kind_of(const ReplayEdge& edge) {
  const std::string name = edge.kind == DependencyKind::message ? "message" : "send";
  return {edge.binding ? name : name + " before", 2};
}

FittedCosts fit_half(const ReplayProgram& program, const std::function<bool(std::int32_t)>& chosen) {
  FittedCosts costs;
  for (std::uint32_t c = 0; c < program.collectives.size(); ++c) {
    const ReplayCollective& of = program.collectives[c];
    if (chosen(of.iteration)) costs.network.observe({of.operation, of.members}, of.bytes, of.recorded_ns, c);
  }
  for (const ReplayEdge& edge : program.edges) {
    if (!chosen(edge.iteration) || edge.recorded_ns < 0) continue;  // below 0: the track did not wait
    if (carries_bytes(edge.kind)) {
      costs.network.observe(kind_of(edge), edge.bytes, edge.recorded_ns);
    } else {
      costs.latencies_ns[edge.kind].push_back(edge.recorded_ns);
    }
  }
  costs.network.fit();
  for (auto& [kind, values] : costs.latencies_ns) std::ranges::sort(values);
  return costs;
}

class Simulation {
 public:
  Simulation(const ReplayProgram& program, const CrossFit& costs, const CollectiveTime& time,
             const MessageTime& message)
      : program_(program),
        costs_(costs),
        time_(time),
        message_time_(message),
        tracks_(program.tracks.size()),
        caused_(program.edges.size(), not_yet),
        collectives_(program.collectives.size()),
        begun_(program.ranks, std::vector<double>(program.iterations.size(), 0)),
        took_(program.ranks, std::vector<double>(program.iterations.size(), 0)) {
    out_.parts.resize(program.iterations.size());
  }

  Replayed run() {
    for (std::size_t t = 0; t < tracks_.size(); ++t) ready_.push_back(t);
    while (true) {
      while (!ready_.empty()) {
        const std::size_t track = ready_.back();
        ready_.pop_back();
        advance(track);
      }
      if (!release_one()) break;
      out_.complete = false;
    }
    for (std::size_t i = 0; i < program_.iterations.size(); ++i) {
      double sum = 0;
      for (const auto& of_rank : took_) sum += of_rank[i];
      out_.iteration_ns.push_back(sum / static_cast<double>(program_.ranks));
      out_.wait_ns.push_back(out_.parts[i].waiting);
    }
    return std::move(out_);
  }

 private:
  static constexpr double not_yet = -1;
  struct Track {
    std::size_t next = 0;
    double now_ns = 0;
    bool inside = false;  // an iteration
    bool forced = false;  // goes on without the cause of its wait
  };
  struct Meeting {
    std::uint32_t arrived = 0;
    double last_ns = 0;
    bool done = false;
    double transfer_ns = 0;
    const std::vector<double>* shape = nullptr;  // when each member goes on, as a part of the transfer
    std::vector<std::size_t> waiting;
  };

  void advance(std::size_t t) {
    Track& track = tracks_[t];
    const std::vector<ReplayItem>& items = *program_.tracks[t].items;
    for (; track.next < items.size(); ++track.next) {
      if (!step(t, track, items[track.next])) return;
      track.forced = false;
    }
  }

  // False: the track has to wait.
  bool step(std::size_t t, Track& track, const ReplayItem& item) {
    const std::uint32_t rank = program_.tracks[t].rank;
    switch (item.what) {
      case ReplayItem::work:
        track.now_ns += item.ns;
        if (StepParts* parts = parts_of(t, item)) parts->work[static_cast<std::size_t>(item.phase)] += share(item.ns);
        return true;
      case ReplayItem::begin_iteration:
        begun_[rank][item.index] = track.now_ns;
        track.inside = true;
        return true;
      case ReplayItem::end_iteration:
        took_[rank][item.index] = track.now_ns - begun_[rank][item.index];
        track.inside = false;
        return true;
      case ReplayItem::arrive:
        arrive(item.index, track.now_ns);
        return true;
      case ReplayItem::complete:
        return complete(t, track, item);
      case ReplayItem::cause: {
        caused_[item.index] = track.now_ns;
        if (const auto waiting = waiting_.find(item.index); waiting != waiting_.end()) {
          ready_.push_back(waiting->second);
          waiting_.erase(waiting);
        }
        return true;
      }
      case ReplayItem::wait:
        return wait(t, track, item);
      case ReplayItem::gradient:
        return true;
    }
    return true;
  }

  void arrive(std::uint32_t index, double now_ns) {
    Meeting& meeting = collectives_[index];
    meeting.last_ns = std::max(meeting.last_ns, now_ns);
    if (++meeting.arrived < program_.collectives[index].arrivals) return;
    const ReplayCollective& of = program_.collectives[index];
    meeting.last_ns += of.extra_ns;
    const FittedCosts& costs = costs_.for_iteration(of.iteration);
    meeting.done = true;
    meeting.transfer_ns = time_(of, costs);
    if (of.drawn != no_collective) {
      meeting.shape = program_.collectives[of.drawn].shape.get();
    } else if (const auto sample = costs.network.sample({of.operation, of.members}, of.bytes, of.quantile)) {
      meeting.shape = program_.collectives[sample->id].shape.get();
    }
    for (const std::size_t waiting : meeting.waiting) ready_.push_back(waiting);
    meeting.waiting.clear();
  }

  bool complete(std::size_t t, Track& track, const ReplayItem& item) {
    Meeting& meeting = collectives_[item.index];
    if (!meeting.done && !track.forced) {
      meeting.waiting.push_back(t);
      return false;
    }
    if (!meeting.done) return true;
    const bool shaped = meeting.shape != nullptr && item.member < meeting.shape->size();
    const double part = shaped ? (*meeting.shape)[item.member] : 1;
    const double came_ns = track.now_ns;
    track.now_ns = std::max(came_ns, meeting.last_ns + part * meeting.transfer_ns);
    if (StepParts* parts = parts_of(t, item)) {
      const double waited = std::clamp(meeting.last_ns - came_ns, 0.0, track.now_ns - came_ns);
      parts->waiting += share(waited);
      parts->transfer += share(track.now_ns - came_ns - waited);
    }
    return true;
  }

  // Of the iteration that the item of a main thread is in; nullptr for other items, and between iterations.
  StepParts* parts_of(std::size_t t, const ReplayItem& item) {
    return program_.tracks[t].main && tracks_[t].inside && item.iteration >= 0
               ? &out_.parts[static_cast<std::size_t>(item.iteration)]
               : nullptr;
  }
  double share(double ns) const { return ns / static_cast<double>(program_.ranks); }

  bool wait(std::size_t t, Track& track, const ReplayItem& item) {
    const std::uint32_t index = item.index;
    if (caused_[index] == not_yet && !track.forced) {
      waiting_[index] = t;
      return false;
    }
    const ReplayEdge& edge = program_.edges[index];
    const FittedCosts& costs = costs_.for_iteration(edge.iteration);
    const double came_ns = track.now_ns, caused_ns = caused_[index];
    if (carries_bytes(edge.kind)) {
      const double transfer_ns = message_time_(edge, latency_ns(edge, costs), costs);
      track.now_ns =
          edge.binding ? std::max(came_ns, caused_ns + transfer_ns) : std::max(came_ns, caused_ns) + transfer_ns;
    } else if (caused_ns > came_ns) {  // a cause that came before the track costs it nothing
      track.now_ns = caused_ns + latency_ns(edge, costs);
    }
    if (StepParts* parts = parts_of(t, item)) {
      (carries_bytes(edge.kind) ? parts->transfer : parts->helpers) += share(track.now_ns - came_ns);
    }
    return true;
  }

  static double latency_ns(const ReplayEdge& edge, const FittedCosts& costs) {
    if (edge.drawn_ns >= 0) return edge.drawn_ns;
    if (carries_bytes(edge.kind)) {
      if (!edge.binding && edge.recorded_ns < 0) return 0;  // one of several that were waited for together
      return costs.network.time_ns(kind_of(edge), edge.bytes, edge.quantile);
    }
    const auto found = costs.latencies_ns.find(edge.kind);
    if (found == costs.latencies_ns.end()) return 0;
    const auto place = static_cast<std::size_t>(edge.quantile * static_cast<double>(found->second.size()));
    return found->second[std::min(place, found->second.size() - 1)];
  }

  // All tracks wait: the one that has come least far goes on without its cause.
  bool release_one() {
    std::optional<std::size_t> first;
    for (std::size_t t = 0; t < tracks_.size(); ++t) {
      if (tracks_[t].next == (*program_.tracks[t].items).size()) continue;
      if (!first || tracks_[t].now_ns < tracks_[*first].now_ns) first = t;
    }
    if (!first) return false;
    tracks_[*first].forced = true;
    ready_.push_back(*first);
    return true;
  }

  const ReplayProgram& program_;
  const CrossFit& costs_;
  const CollectiveTime& time_;
  const MessageTime& message_time_;
  std::vector<Track> tracks_;
  std::vector<double> caused_;
  std::vector<Meeting> collectives_;
  std::map<std::uint32_t, std::size_t> waiting_;  // track by edge
  std::vector<std::size_t> ready_;
  std::vector<std::vector<double>> begun_, took_;  // by rank and iteration
  Replayed out_;
};

}  // namespace replay_parts

CrossFit fit_costs(const ReplayProgram& program) {
  const auto count = static_cast<std::int32_t>(program.iterations.size()), warm_up = warm_up_of(program);
  const auto half = [&](std::int32_t wanted) {
    return [=](std::int32_t iteration) {
      return iteration >= warm_up && (count <= replay_block || iteration / replay_block % 2 == wanted);
    };
  };
  CrossFit fit{replay_parts::fit_half(program, half(0)), replay_parts::fit_half(program, half(1))};
  std::vector<double> usual(program.iterations.size(), 0), drawn(usual);
  for (const ReplayCollective& of : program.collectives) {
    if (!of.gradient || of.drawn == no_collective) continue;
    const auto iteration = static_cast<std::size_t>(of.iteration);
    usual[iteration] += fit.for_iteration(of.iteration).network.time_ns({of.operation, of.members}, of.bytes);
    drawn[iteration] += of.drawn_ns;
  }
  for (std::size_t i = 0; i < usual.size(); ++i) drawn[i] = usual[i] > 0 ? drawn[i] / usual[i] : 1;
  fit.of_even.gradient_factor = fit.of_odd.gradient_factor = std::move(drawn);
  return fit;
}

double fitted_time(const ReplayCollective& of, const FittedCosts& costs) {
  if (of.drawn != no_collective) return of.drawn_ns;
  const double usual = costs.network.time_ns({of.operation, of.members}, of.bytes, of.quantile);
  return of.rescheduled && of.gradient ? usual * costs.gradient_factor[static_cast<std::size_t>(of.iteration)] : usual;
}

double fitted_message_time(const ReplayEdge&, double ns, const FittedCosts&) { return ns; }

Replayed replay(const ReplayProgram& program, const CrossFit& costs, const CollectiveTime& time,
                const MessageTime& message_time) {
  return replay_parts::Simulation(program, costs, time, message_time).run();
}

}  // namespace paceline::analysis
