// SPDX-License-Identifier: Apache-2.0
// Work on streams: which call launched it, what it followed, and which calls waited for it.
#include <algorithm>
#include <unordered_map>

#include "analysis/graph/dependencies.h"

namespace paceline::analysis {
namespace stream_parts {

constexpr std::int64_t event_latency_ns = 20'000;  // a stream that waits for another's event goes on within this time

struct Place {
  std::uint32_t track = 0;
  std::int64_t start_ns = 0;
};

struct WorkEnd {
  std::int64_t end_ns = 0;
  std::uint32_t track = 0;
};

class Streams {
 public:
  Streams(const Trace& trace, const Rank& rank) : trace_(trace), rank_(rank) {}

  std::vector<OwnDependencies> run() {
    const bool any =
        std::ranges::any_of(rank_.tracks, [](const Track& track) { return track.kind == TrackKind::stream; });
    if (!any) return {};
    find_launches();
    for (std::uint32_t t = 0; t < rank_.tracks.size(); ++t) {
      if (rank_.tracks[t].kind != TrackKind::stream) continue;
      const Slices& slices = rank_.tracks[t].slices;
      for (std::size_t i = 0; i < slices.size(); ++i) {
        if (slices.depth[i] == 0) ends_.push_back({slices.end_ns(i), t});
      }
    }
    std::ranges::sort(ends_, {}, &WorkEnd::end_ns);
    for (std::uint32_t t = 0; t < rank_.tracks.size(); ++t) {
      if (rank_.tracks[t].kind == TrackKind::stream) add_stream(t);
      if (rank_.tracks[t].kind == TrackKind::thread) add_waits(t);
    }
    return std::move(out_);
  }

 private:
  void find_launches() {
    if (correlation_ == 0) return;
    for (std::uint32_t t = 0; t < rank_.tracks.size(); ++t) {
      if (rank_.tracks[t].kind != TrackKind::thread) continue;
      const Slices& slices = rank_.tracks[t].slices;
      for (std::size_t i = 0; i < slices.size(); ++i) {
        if (slices.record[i] == 0) continue;
        // The outer call comes first where the runtime called the driver.
        if (const auto found = slices.argument(i, correlation_)) {
          launches_.try_emplace(found->whole(), Place{t, slices.start_ns[i]});
        }
      }
    }
  }

  void add_stream(std::uint32_t track) {
    const Slices& slices = rank_.tracks[track].slices;
    std::int64_t previous_end = rank_.start_ns;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (slices.depth[i] != 0) continue;
      const std::int64_t start = slices.start_ns[i];
      std::int64_t ready = previous_end;
      if (const Place* launch = launch_of(slices, i)) {
        const std::int64_t launched = std::min(launch->start_ns, start);
        add(track, {previous_end, start, launched, launch->track, DependencyKind::launch});
        ready = std::max(ready, launched);
      }
      if (const WorkEnd* other = latest_end(start, track);
          other != nullptr && other->end_ns > ready && start - other->end_ns < event_latency_ns) {
        add(track, {previous_end, start, other->end_ns, other->track, DependencyKind::stream});
      }
      previous_end = slices.end_ns(i);
    }
  }

  const Place* launch_of(const Slices& slices, std::size_t i) const {
    if (correlation_ == 0 || slices.record[i] == 0) return nullptr;
    const auto found = slices.argument(i, correlation_);
    if (!found) return nullptr;
    const auto launch = launches_.find(found->whole());
    return launch == launches_.end() ? nullptr : &launch->second;
  }

  // The last work that ended by then, on a stream other than `without`.
  const WorkEnd* latest_end(std::int64_t time_ns, std::uint32_t without) const {
    auto at = std::ranges::upper_bound(ends_, time_ns, {}, &WorkEnd::end_ns);
    for (int looked = 0; at != ends_.begin() && looked < 8; ++looked) {
      if ((--at)->track != without) return &*at;
    }
    return nullptr;
  }

  // Calls that wait for the device: those that synchronise, and copies that block.
  void add_waits(std::uint32_t track) {
    const Slices& slices = rank_.tracks[track].slices;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (!waits(slices.kind[i])) continue;
      const WorkEnd* last = latest_end(slices.end_ns(i), no_track);
      if (last == nullptr || last->end_ns <= slices.start_ns[i]) continue;
      add(track, {slices.start_ns[i], slices.end_ns(i), last->end_ns, last->track, DependencyKind::device_wait});
    }
  }

  bool waits(KindId kind) {
    if (waiting_kinds_.empty()) {
      const NameId cuda = trace_.names.find("cuda"), synchronization = trace_.names.find("synchronization");
      for (const Kind& of : trace_.kinds) {
        const std::string& name = trace_.names[of.name];
        const bool copies = name.find("Memcpy") != name.npos && name.find("Async") == name.npos;
        const bool synchronises = of.category == synchronization || name.find("Synchronize") != name.npos;
        waiting_kinds_.push_back(cuda != 0 && of.domain == cuda && (copies || synchronises));
      }
    }
    return waiting_kinds_[kind] != 0;
  }

  void add(std::uint32_t track, const Dependency& wait) { out_.push_back({track, wait}); }

  const Trace& trace_;
  const Rank& rank_;
  const NameId correlation_ = trace_.names.find("correlation");
  std::unordered_map<std::uint64_t, Place> launches_;  // by correlation
  std::vector<WorkEnd> ends_;                          // of all streams, by time
  std::vector<std::uint8_t> waiting_kinds_;
  std::vector<OwnDependencies> out_;
};

}  // namespace stream_parts

std::vector<OwnDependencies> stream_dependencies(const Trace& trace, const Rank& rank) {
  return stream_parts::Streams(trace, rank).run();
}

}  // namespace paceline::analysis
