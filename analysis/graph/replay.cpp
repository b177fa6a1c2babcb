// SPDX-License-Identifier: Apache-2.0
#include "analysis/graph/replay.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

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

// Replays several variants of a program at once, one in each lane. All of them wait at the same items, so they share
// the walk through the program, and each keeps its own times.
template <std::size_t lanes>
class Simulation {
 public:
  // At least one variant and at most as many as there are lanes.
  Simulation(const ReplayProgram& program, const CrossFit& costs, std::span<const ReplayVariant> variants)
      : program_(program),
        costs_(costs),
        variants_(variants),
        tracks_(program.tracks.size()),
        edges_(program.edges.size()),
        collectives_(program.collectives.size()),
        took_(program.iterations.size() * program.ranks),
        parts_(program.iterations.size()) {
    static const TransferDraw no_draw;
    for (std::size_t l = 0; l < lanes; ++l) {
      const std::size_t draw = variants[std::min(l, variants.size() - 1)].draw;
      draws_[l] = draw < program.draws.size() ? program.draws[draw].get() : &no_draw;
      one_draw_ = one_draw_ && draws_[l] == draws_[0];
    }
    add_factors();
  }

  // Nothing where a track has to go on without its cause while there are several variants: which one it is may differ
  // between them.
  std::optional<std::vector<Replayed>> run() {
    bool complete = true;
    for (std::size_t t = 0; t < tracks_.size(); ++t) ready_.push_back(t);
    while (true) {
      while (!ready_.empty()) {
        const std::size_t track = ready_.back();
        ready_.pop_back();
        advance(track);
      }
      if (!release_one()) break;
      if (variants_.size() > 1) return std::nullopt;
      complete = false;
    }
    std::vector<Replayed> out;
    for (std::size_t l = 0; l < variants_.size(); ++l) out.push_back(result(l, complete));
    return out;
  }

 private:
  using Lanes = std::array<double, lanes>;
  static constexpr double not_yet = -1;
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct Track {
    std::size_t next = 0;
    Lanes now_ns{};
    bool inside = false;  // an iteration
    bool forced = false;  // goes on without the cause of its wait
  };
  struct Edge {
    std::uint32_t caused = none;   // index into caused_ns_
    std::uint32_t waiting = none;  // the track
  };
  struct Meeting {
    std::uint32_t arrived = 0;
    bool done = false;
    Lanes last_ns{};
    Lanes transfer_ns{};
    // When each member goes on, as a part of the transfer.
    std::array<const std::vector<double>*, lanes> shape{};
    std::vector<std::size_t> waiting;
  };
  // Of a collective, without the changes of a variant.
  struct Transfer {
    double ns = 0;
    const std::vector<double>* shape = nullptr;  // as in Meeting
  };
  // StepParts of each lane.
  struct Parts {
    std::array<Lanes, phase_count> work{};
    Lanes waiting{}, transfer{}, helpers{};
  };
  struct RankFactors {
    std::size_t lane = 0;
    const PhaseWork* of_iteration = nullptr;
  };

  void add_factors() {
    std::uint8_t groups = 0;
    for (const ReplayTrack& track : program_.tracks) {
      auto& of_track = rank_factors_.emplace_back();
      for (std::size_t l = 0; track.main && l < variants_.size(); ++l) {
        const PhaseWork* of = variants_[l].work.of_rank(track.rank);
        if (of != nullptr) of_track.push_back({l, of});
      }
      for (const ReplayItem& item : *track.items) groups = std::max(groups, item.group);
    }
    group_factors_.resize(groups + 1U);
    for (std::size_t l = 0; l < lanes; ++l) {
      const WorkFactors& of = variants_[std::min(l, variants_.size() - 1)].work;
      for (std::size_t phase = 0; phase < phase_count; ++phase) phase_factors_[phase][l] = of.phase(phase);
      for (std::size_t group = 0; group <= groups; ++group) group_factors_[group][l] = of.group(group);
    }
  }

  // As WorkFactors::scaled().
  Lanes scaled(std::size_t t, const ReplayItem& item) const {
    Lanes ns;
    ns.fill(item.ns);
    const auto phase = static_cast<std::size_t>(item.phase);
    if (item.iteration >= 0) multiply(ns, phase_factors_[phase]);
    if (item.group > 0) multiply(ns, group_factors_[item.group]);
    if (item.iteration < 0) return ns;
    for (const RankFactors& of : rank_factors_[t]) ns[of.lane] *= of.of_iteration[item.iteration][phase];
    return ns;
  }

  static void multiply(Lanes& values, const Lanes& factors) {
    for (std::size_t l = 0; l < lanes; ++l) values[l] *= factors[l];
  }
  static void add(Lanes& to, const Lanes& values) {
    for (std::size_t l = 0; l < lanes; ++l) to[l] += values[l];
  }
  // Adds the share of one rank in the mean over the ranks.
  void add_share(Lanes& to, const Lanes& ns) const {
    const auto ranks = static_cast<double>(program_.ranks);
    for (std::size_t l = 0; l < lanes; ++l) to[l] += ns[l] / ranks;
  }

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
      case ReplayItem::work: {
        const Lanes ns = scaled(t, item);
        add(track.now_ns, ns);
        if (Parts* parts = parts_of(t, item)) add_share(parts->work[static_cast<std::size_t>(item.phase)], ns);
        return true;
      }
      case ReplayItem::begin_iteration:
        took(item.index, rank) = track.now_ns;
        track.inside = true;
        return true;
      case ReplayItem::end_iteration: {
        Lanes& of = took(item.index, rank);
        for (std::size_t l = 0; l < lanes; ++l) of[l] = track.now_ns[l] - of[l];
        track.inside = false;
        return true;
      }
      case ReplayItem::arrive:
        arrive(item.index, track.now_ns);
        return true;
      case ReplayItem::complete:
        return complete(t, track, item);
      case ReplayItem::cause:
        cause(edges_[item.index], track.now_ns);
        return true;
      case ReplayItem::wait:
        return wait(t, track, item);
      case ReplayItem::gradient:
        return true;
    }
    return true;
  }

  void arrive(std::uint32_t index, const Lanes& now_ns) {
    Meeting& meeting = collectives_[index];
    for (std::size_t l = 0; l < lanes; ++l) meeting.last_ns[l] = std::max(meeting.last_ns[l], now_ns[l]);
    if (++meeting.arrived < program_.collectives[index].arrivals) return;
    const ReplayCollective& of = program_.collectives[index];
    const FittedCosts& costs = costs_.for_iteration(of.iteration);
    meeting.done = true;
    Transfer usual;
    for (std::size_t l = 0; l < variants_.size(); ++l) {
      const ReplayVariant& variant = variants_[l];
      std::optional<ReplayCollective> other;  // of other bytes
      if (of.rescheduled && of.gradient && variant.gradient_bytes != 1) {
        other = of;
        other->bytes = static_cast<std::uint64_t>(static_cast<double>(of.bytes) * variant.gradient_bytes + 0.5);
      }
      const ReplayCollective& own = other ? *other : of;
      if (l == 0 || !one_draw_ || of.rescheduled) usual = usual_transfer(own, draws_[l]->collective(index), costs);
      meeting.last_ns[l] += of.extra_ns + (variant.extra_ns.empty() ? 0 : variant.extra_ns[index]);
      meeting.transfer_ns[l] = variant.collective_time ? variant.collective_time(own, usual.ns, costs) : usual.ns;
      meeting.shape[l] = usual.shape;
    }
    for (const std::size_t waiting : meeting.waiting) ready_.push_back(waiting);
    meeting.waiting.clear();
  }

  Transfer usual_transfer(const ReplayCollective& of, std::uint32_t drawn, const FittedCosts& costs) const {
    if (drawn != no_collective) {
      const ReplayCollective& from = program_.collectives[drawn];
      return {from.recorded_ns, from.shape.get()};
    }
    Transfer usual{costs.network.time_ns({of.operation, of.members}, of.bytes, of.quantile)};
    if (of.rescheduled && of.gradient) usual.ns *= costs.gradient_factor[static_cast<std::size_t>(of.iteration)];
    if (const auto sample = costs.network.sample({of.operation, of.members}, of.bytes, of.quantile)) {
      usual.shape = program_.collectives[sample->id].shape.get();
    }
    return usual;
  }

  bool complete(std::size_t t, Track& track, const ReplayItem& item) {
    Meeting& meeting = collectives_[item.index];
    if (!meeting.done && !track.forced) {
      meeting.waiting.push_back(t);
      return false;
    }
    if (!meeting.done) return true;
    const Lanes came_ns = track.now_ns;
    for (std::size_t l = 0; l < lanes; ++l) {
      const std::vector<double>* shape = meeting.shape[l];
      const double part = shape != nullptr && item.member < shape->size() ? (*shape)[item.member] : 1;
      track.now_ns[l] = std::max(came_ns[l], meeting.last_ns[l] + part * meeting.transfer_ns[l]);
    }
    if (Parts* parts = parts_of(t, item)) {
      Lanes waited, moved;
      for (std::size_t l = 0; l < lanes; ++l) {
        waited[l] = std::clamp(meeting.last_ns[l] - came_ns[l], 0.0, track.now_ns[l] - came_ns[l]);
        moved[l] = track.now_ns[l] - came_ns[l] - waited[l];
      }
      add_share(parts->waiting, waited);
      add_share(parts->transfer, moved);
    }
    return true;
  }

  // Of the iteration that the item of a main thread is in; nullptr for other items, and between iterations.
  Parts* parts_of(std::size_t t, const ReplayItem& item) {
    return program_.tracks[t].main && tracks_[t].inside && item.iteration >= 0
               ? &parts_[static_cast<std::size_t>(item.iteration)]
               : nullptr;
  }

  void cause(Edge& edge, const Lanes& now_ns) {
    if (free_.empty()) {
      edge.caused = static_cast<std::uint32_t>(caused_ns_.size());
      caused_ns_.push_back(now_ns);
    } else {
      edge.caused = free_.back();
      free_.pop_back();
      caused_ns_[edge.caused] = now_ns;
    }
    if (edge.waiting != none) ready_.push_back(std::exchange(edge.waiting, none));
  }

  // When the edge was caused. Nobody asks for it again.
  Lanes take_cause(Edge& edge) {
    Lanes caused_ns;
    caused_ns.fill(not_yet);
    if (edge.caused == none) return caused_ns;
    free_.push_back(edge.caused);
    return caused_ns_[std::exchange(edge.caused, none)];
  }

  bool wait(std::size_t t, Track& track, const ReplayItem& item) {
    Edge& state = edges_[item.index];
    if (state.caused == none && !track.forced) {
      state.waiting = static_cast<std::uint32_t>(t);
      return false;
    }
    const ReplayEdge& edge = program_.edges[item.index];
    const FittedCosts& costs = costs_.for_iteration(edge.iteration);
    const Lanes came_ns = track.now_ns, caused_ns = take_cause(state);
    Lanes took_ns;
    took_ns.fill(latency_ns(edge, draws_[0]->edge_ns(item.index), costs));
    for (std::size_t l = 1; !one_draw_ && l < lanes; ++l) {
      took_ns[l] = latency_ns(edge, draws_[l]->edge_ns(item.index), costs);
    }
    if (carries_bytes(edge.kind)) {
      for (std::size_t l = 0; l < variants_.size(); ++l) {
        if (variants_[l].message_time) took_ns[l] = variants_[l].message_time(edge, took_ns[l], costs);
      }
      for (std::size_t l = 0; l < lanes; ++l) {
        track.now_ns[l] = edge.binding ? std::max(came_ns[l], caused_ns[l] + took_ns[l])
                                       : std::max(came_ns[l], caused_ns[l]) + took_ns[l];
      }
    } else {  // a cause that came before the track costs it nothing
      for (std::size_t l = 0; l < lanes; ++l) {
        track.now_ns[l] = caused_ns[l] > came_ns[l] ? caused_ns[l] + took_ns[l] : came_ns[l];
      }
      skip_waits(item, edge, came_ns, track.now_ns);
    }
    if (Parts* parts = parts_of(t, item)) {
      Lanes waited;
      for (std::size_t l = 0; l < lanes; ++l) waited[l] = track.now_ns[l] - came_ns[l];
      add_share(carries_bytes(edge.kind) ? parts->transfer : parts->helpers, waited);
    }
    return true;
  }

  // A phase that takes no time has no waits for helpers either: what they did need not have been recorded, as the start
  // of a loader's process.
  void skip_waits(const ReplayItem& item, const ReplayEdge& edge, const Lanes& came_ns, Lanes& now_ns) const {
    if (edge.kind != DependencyKind::helper || item.iteration < 0) return;
    for (std::size_t l = 0; l < lanes; ++l) {
      if (phase_factors_[static_cast<std::size_t>(item.phase)][l] == 0) now_ns[l] = came_ns[l];
    }
  }

  static double latency_ns(const ReplayEdge& edge, double drawn_ns, const FittedCosts& costs) {
    if (drawn_ns >= 0) return drawn_ns;
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
      if (!first || tracks_[t].now_ns[0] < tracks_[*first].now_ns[0]) first = t;
    }
    if (!first) return false;
    tracks_[*first].forced = true;
    ready_.push_back(*first);
    return true;
  }

  Lanes& took(std::uint32_t iteration, std::uint32_t rank) { return took_[iteration * program_.ranks + rank]; }

  Replayed result(std::size_t l, bool complete) const {
    Replayed out;
    out.complete = complete;
    const std::size_t count = program_.iterations.size();
    out.iteration_ns.reserve(count), out.wait_ns.reserve(count), out.parts.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      double sum = 0;
      for (std::size_t r = 0; r < program_.ranks; ++r) sum += took_[i * program_.ranks + r][l];
      out.iteration_ns.push_back(sum / static_cast<double>(program_.ranks));
      StepParts& parts = out.parts.emplace_back();
      for (std::size_t phase = 0; phase < phase_count; ++phase) parts.work[phase] = parts_[i].work[phase][l];
      parts.waiting = parts_[i].waiting[l];
      parts.transfer = parts_[i].transfer[l];
      parts.helpers = parts_[i].helpers[l];
      out.wait_ns.push_back(parts.waiting);
    }
    return out;
  }

  const ReplayProgram& program_;
  const CrossFit& costs_;
  std::span<const ReplayVariant> variants_;
  std::array<const TransferDraw*, lanes> draws_;
  bool one_draw_ = true;
  std::array<Lanes, phase_count> phase_factors_;
  std::vector<Lanes> group_factors_;
  std::vector<std::vector<RankFactors>> rank_factors_;  // of each track
  std::vector<Track> tracks_;
  std::vector<Edge> edges_;
  std::vector<Lanes> caused_ns_;     // of edges that were not waited for yet
  std::vector<std::uint32_t> free_;  // places there
  std::vector<Meeting> collectives_;
  std::vector<std::size_t> ready_;
  std::vector<Lanes> took_;  // by iteration and rank; the begin until the end
  std::vector<Parts> parts_;
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
  for (std::uint32_t c = 0; c < program.collectives.size(); ++c) {
    const ReplayCollective& of = program.collectives[c];
    const std::uint32_t partner = program.draws.empty() ? no_collective : program.draws.front()->collective(c);
    if (!of.gradient || partner == no_collective) continue;
    const auto iteration = static_cast<std::size_t>(of.iteration);
    usual[iteration] += fit.for_iteration(of.iteration).network.time_ns({of.operation, of.members}, of.bytes);
    drawn[iteration] += program.collectives[partner].recorded_ns;
  }
  for (std::size_t i = 0; i < usual.size(); ++i) drawn[i] = usual[i] > 0 ? drawn[i] / usual[i] : 1;
  fit.of_even.gradient_factor = fit.of_odd.gradient_factor = std::move(drawn);
  return fit;
}

Replayed replay(const ReplayProgram& program, const CrossFit& costs, const ReplayVariant& variant) {
  return std::move(replay_parts::Simulation<1>(program, costs, {&variant, 1}).run()->front());
}

std::vector<Replayed> replay(const ReplayProgram& program, const CrossFit& costs,
                             std::span<const ReplayVariant> variants) {
  using replay_parts::Simulation;
  std::vector<Replayed> out;
  while (!variants.empty()) {
    const auto some = variants.first(std::min(variants.size(), replay_lanes));
    variants = variants.subspan(some.size());
    auto replayed = some.size() > 1 ? Simulation<replay_lanes>(program, costs, some).run() : std::nullopt;
    for (std::size_t v = 0; v < some.size(); ++v) {
      out.push_back(replayed ? std::move((*replayed)[v]) : replay(program, costs, some[v]));
    }
  }
  return out;
}

}  // namespace paceline::analysis
