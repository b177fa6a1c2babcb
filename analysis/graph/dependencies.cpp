// SPDX-License-Identifier: Apache-2.0
#include "analysis/graph/dependencies.h"

#include <algorithm>
#include <optional>

#include "analysis/trace/intervals.h"
#include "analysis/trace/parallel.h"

namespace paceline::analysis {
namespace graph_building {

// Where a collective call waits.
struct Waiter {
  std::uint32_t track = 0;  // index into Rank::tracks
  std::int64_t blocked_from_ns = 0;
};

// What is computed of each rank by itself.
struct RankPart {
  std::vector<Waiter> waiters;  // of each collective call
  std::vector<OwnDependencies> own;
};

// Since when a thread was blocked in its call. One that polls a request, and does nothing else between the calls, waits
// from the end of the call that posted it.
std::int64_t blocked_from(const Trace& trace, const Rank& rank, const CollectiveCall& call) {
  const Track& track = rank.tracks[call.track];
  const Slices& slices = track.slices;
  if (track.main || !call.timed || call.end_ns <= slices.end_ns(call.slice)) return call.blocked_from_ns;
  const NameId wait = trace.names.find("wait"), mpi = trace.names.find("mpi");
  for (std::size_t i = call.slice + 1; i < slices.size(); ++i) {
    const Kind& kind = trace.kind_of(slices, i);
    if (kind.category != wait || kind.domain != mpi) break;
    if (slices.end_ns(i) >= call.end_ns) return slices.end_ns(call.slice);
  }
  return call.blocked_from_ns;
}

constexpr std::int64_t polling_pause_ns = 1'000'000;  // at most, between two probes of a main thread that waits

// Since when the thread had probed for the message that it then received; nothing if it did not. A thread that probes
// again and again, and does nothing else between the calls, waits from its first probe; a helper thread, which has no
// work of its own, from the end of its last other call.
std::optional<std::int64_t> probed_from(const Trace& trace, const MessageCall& receive) {
  const Track& track = trace.ranks[receive.rank].tracks[receive.track];
  const Slices& slices = track.slices;
  const auto probes = [&](std::size_t i) {
    return trace.names[trace.kind_of(slices, i).name].ends_with("probe") &&
           slices.depth[i] == slices.depth[receive.slice];
  };
  std::size_t first = receive.slice;
  while (first > 0 && probes(first - 1)) {
    const std::int64_t pause_ns = slices.start_ns[first] - slices.end_ns(first - 1);
    if (track.main && pause_ns > polling_pause_ns) break;
    --first;
  }
  if (first == receive.slice) return std::nullopt;
  const bool after_call = !track.main && first > 0 && slices.depth[first - 1] == slices.depth[receive.slice];
  return after_call ? slices.end_ns(first - 1) : slices.start_ns[first];
}

// NCCL's calls are on a track of their own, and their kernels on a stream. The stream is what waits.
class NcclStreams {
 public:
  NcclStreams(const PhaseTable& table, const Rank& rank) {
    for (std::uint32_t t = 0; t < rank.tracks.size(); ++t) {
      if (rank.tracks[t].kind != TrackKind::stream) continue;
      const Slices& slices = rank.tracks[t].slices;
      for (std::size_t i = 0; i < slices.size(); ++i) {
        if (table.phase(slices.kind[i]) != Phase::communication) continue;
        kernels_.push_back({slices.start_ns[i], slices.end_ns(i), t});
      }
    }
    std::ranges::sort(kernels_, {}, &Kernel::start_ns);
  }

  // The stream whose communication kernel runs in the middle of the call; `otherwise` where none does.
  std::uint32_t track_of(const CollectiveCall& call, std::uint32_t otherwise) const {
    const std::int64_t middle = call.start_ns + (call.end_ns - call.start_ns) / 2;
    auto at = std::ranges::upper_bound(kernels_, middle, {}, &Kernel::start_ns);
    for (int looked = 0; at != kernels_.begin() && looked < 8; ++looked) {
      if ((--at)->end_ns >= middle) return at->track;
    }
    return otherwise;
  }

 private:
  struct Kernel {
    std::int64_t start_ns, end_ns;
    std::uint32_t track;
  };
  std::vector<Kernel> kernels_;
};

RankPart part_of(const RunIndex& index, std::uint32_t r) {
  const Trace& trace = index.trace();
  const Rank& rank = trace.ranks[r];
  RankPart part;
  const NcclStreams nccl(index.phases(), rank);
  for (const CollectiveCall& call : index.calls()[r].calls) {
    const bool on_stream = rank.tracks[call.track].kind == TrackKind::nccl;
    part.waiters.push_back({on_stream ? nccl.track_of(call, call.track) : call.track, blocked_from(trace, rank, call)});
  }
  part.own = stream_dependencies(trace, rank);
  for (OwnDependencies& own : helper_dependencies(index.phases(), rank, index.calls()[r])) part.own.push_back(own);
  return part;
}

class Builder {
 public:
  Builder(const RunIndex& index, const Messages* messages)
      : index_(index), trace_(index.trace()), messages_(messages), parts_(trace_.ranks.size()) {}

  DependencyGraph run() {
    index_.collectives();  // before the threads ask for its calls
    parallel_for(parts_.size(), [&](std::size_t r) { parts_[r] = part_of(index_, static_cast<std::uint32_t>(r)); });
    add_tracks();
    cover_ranges();
    add_collectives();
    std::ranges::stable_sort(out_.collectives, {}, &GraphCollective::last_arrival_ns);
    for (std::uint32_t c = 0; c < out_.collectives.size(); ++c) add_waits(c);
    if (messages_ != nullptr) {
      add_messages(*messages_);
    } else if (any_messages()) {
      add_messages(match_messages(trace_));
    }
    for (std::uint32_t r = 0; r < parts_.size(); ++r) {
      for (const OwnDependencies& own : parts_[r].own) add_own(r, own);
    }
    for (TrackDependencies& track : out_.tracks) std::ranges::stable_sort(track.waits, {}, &Dependency::until_ns);
    return std::move(out_);
  }

 private:
  void add_tracks() {
    for (std::uint32_t r = 0; r < trace_.ranks.size(); ++r) {
      out_.main.push_back(no_track);
      of_.emplace_back();
      for (std::uint32_t t = 0; t < trace_.ranks[r].tracks.size(); ++t) {
        const Track& track = trace_.ranks[r].tracks[t];
        of_[r].push_back(no_track);
        if (track.slices.size() == 0 && !track.main) continue;
        of_[r][t] = static_cast<GraphTrack>(out_.tracks.size());
        if (track.main) out_.main[r] = of_[r][t];
        out_.tracks.push_back({r, t, track.main, trace_.ranks[r].start_ns, trace_.ranks[r].end_ns, {}});
      }
    }
    covered_.resize(out_.tracks.size());
  }

  // What a range does is its own affair.
  void cover_ranges() {
    for (std::uint32_t r = 0; r < parts_.size(); ++r) {
      for (const CollectiveCall& call : index_.calls()[r].calls) {
        const GraphTrack track = of_[r][call.track];
        if (call.of_range && track != no_track) covered_[track].push_back({call.start_ns, call.end_ns});
      }
    }
  }

  // Whether an allreduce that is known as a range covers this time.
  bool covered(GraphTrack track, std::int64_t start_ns) const {
    const auto& of = covered_[track];
    auto at = std::ranges::upper_bound(of, start_ns, {}, &TimeInterval::start_ns);
    return at != of.begin() && (--at)->end_ns > start_ns;
  }

  void add_collectives() {
    const Collectives& matched = index_.collectives();
    for (const Collective& of : matched.matched) {
      if (!of.timed) continue;
      GraphCollective collective{.operation = matched.operations[of.operation],
                                 .bytes = of.bytes,
                                 .members = of.members,
                                 .from_range = of.of_range};
      for (const MemberCall& member : of.calls) {
        const Waiter& waiter = parts_[member.rank].waiters[member.call];
        const GraphTrack track = of_[member.rank][waiter.track];
        if (track == no_track || (!of.of_range && covered(track, member.start_ns))) continue;
        collective.arrivals.push_back({track, member.start_ns, waiter.blocked_from_ns, member.end_ns});
      }
      if (collective.arrivals.size() > 1) finish(collective);
    }
  }

  void finish(GraphCollective& collective) {
    for (const CollectiveArrival& arrival : collective.arrivals) {
      collective.last_arrival_ns = std::max(collective.last_arrival_ns, arrival.arrival_ns);
      collective.end_ns = std::max(collective.end_ns, arrival.until_ns);
    }
    out_.collectives.push_back(std::move(collective));
  }

  void add_waits(std::uint32_t index) {
    const GraphCollective& collective = out_.collectives[index];
    const auto last = std::ranges::max_element(collective.arrivals, {}, &CollectiveArrival::arrival_ns);
    for (const CollectiveArrival& arrival : collective.arrivals) {
      // The root of a broadcast need not wait.
      const bool early = arrival.until_ns < collective.last_arrival_ns;
      add(arrival.track, {.from_ns = arrival.blocked_from_ns,
                          .until_ns = arrival.until_ns,
                          .cause_ns = early ? arrival.arrival_ns : last->arrival_ns,
                          .cause = early ? arrival.track : last->track,
                          .kind = DependencyKind::collective,
                          .collective = index,
                          .bytes = collective.bytes});
    }
  }

  bool any_messages() const {
    const NameId message = trace_.names.find("point-to-point");
    return message != 0 && trace_.ranks.size() > 1 &&
           std::ranges::any_of(trace_.kinds, [&](const Kind& kind) { return kind.category == message; });
  }

  void add_messages(const Messages& messages) {
    for (const Message& message : messages.all) {
      if (!message.matched() || !message.receive->completed) continue;
      const GraphTrack sender = of_[message.send->rank][message.send->track];
      const GraphTrack receiver = of_[message.receive->rank][message.receive->track];
      if (sender == no_track || receiver == no_track || sender == receiver) continue;
      if (covered(sender, message.send->start_ns) || covered(receiver, message.receive->start_ns)) continue;
      if (const auto probed_ns = probed_from(trace_, *message.receive)) {
        add(receiver, {.from_ns = *probed_ns,
                       .until_ns = message.receive->start_ns,
                       .cause_ns = std::min(message.send->start_ns, message.receive->start_ns),
                       .cause = sender,
                       .kind = DependencyKind::message});
      }
      add(receiver, {.from_ns = message.receive->blocked_from_ns,
                     .until_ns = message.receive->end_ns,
                     .cause_ns = std::min(message.send->start_ns, message.receive->end_ns),
                     .cause = sender,
                     .kind = DependencyKind::message,
                     .bytes = message.send->bytes});
      // A send that ended after the receive began has waited for it. Others were buffered.
      if (message.send->completed && message.receive->start_ns > message.send->blocked_from_ns &&
          message.send->end_ns >= message.receive->start_ns) {
        add(sender, {.from_ns = message.send->blocked_from_ns,
                     .until_ns = message.send->end_ns,
                     .cause_ns = message.receive->start_ns,
                     .cause = receiver,
                     .kind = DependencyKind::send,
                     .bytes = message.send->bytes});
      }
    }
  }

  void add_own(std::uint32_t rank, const OwnDependencies& own) {
    const GraphTrack track = of_[rank][own.track], cause = of_[rank][own.wait.cause];
    if (track == no_track || cause == no_track) return;
    Dependency wait = own.wait;
    wait.cause = cause;
    add(track, wait);
  }

  void add(GraphTrack track, Dependency wait) {
    wait.cause_ns = std::min(wait.cause_ns, wait.until_ns);
    wait.from_ns = std::min(wait.from_ns, wait.until_ns);
    out_.tracks[track].waits.push_back(wait);
  }

  const RunIndex& index_;
  const Trace& trace_;
  const Messages* const messages_;
  std::vector<RankPart> parts_;
  DependencyGraph out_;
  std::vector<std::vector<GraphTrack>> of_;         // by rank and track of the rank
  std::vector<std::vector<TimeInterval>> covered_;  // by ranges, of each graph track, by time
};

}  // namespace graph_building

DependencyGraph dependency_graph(const RunIndex& index, const Messages* messages) {
  return graph_building::Builder(index, messages).run();
}

}  // namespace paceline::analysis
