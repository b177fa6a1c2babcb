#include "analysis/metrics/range_statistics.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace paceline::analysis {
namespace range_projection {

bool is_counted(const Track& track) {
  return track.kind == TrackKind::thread || track.kind == TrackKind::mpi || track.kind == TrackKind::nccl;
}

// Work on a device, and the time on its thread at which it was launched.
struct Launched {
  std::int64_t launch_ns = 0, start_ns = 0, end_ns = 0;
};

// The work that each thread launched, by thread id, in the order of the launches.
std::map<std::uint64_t, std::vector<Launched>> launches_by_thread(const Trace& trace, const Rank& rank,
                                                                  const Correlations& correlations) {
  std::map<std::uint64_t, std::vector<Launched>> launches;
  const NameId key = trace.names.find("correlation");
  if (key == 0) return launches;
  for (const Track& track : rank.tracks) {
    if (track.kind != TrackKind::stream) continue;
    for (std::size_t i = 0; i < track.slices.size(); ++i) {
      const auto correlation = track.slices.argument(i, key);
      if (!correlation || correlation->whole() >> 32 != 0) continue;
      const auto calls = correlations.calls(static_cast<std::uint32_t>(correlation->whole()));
      if (calls.empty()) continue;
      const Track& thread = rank.tracks[calls.back().track];
      launches[thread.thread_id].push_back(
          {thread.slices.start_ns[calls.back().slice], track.slices.start_ns[i], track.slices.end_ns(i)});
    }
  }
  for (auto& [thread, of] : launches) std::ranges::stable_sort(of, {}, &Launched::launch_ns);
  return launches;
}

// What was launched while a slice was open.
struct Open {
  std::int64_t end_ns = 0;
  KindId kind = 0;
  std::uint64_t operations = 0;
  std::int64_t work_ns = 0;
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max(), last_ns = std::numeric_limits<std::int64_t>::min();

  void add(const Open& inner) {
    operations += inner.operations;
    work_ns += inner.work_ns;
    first_ns = std::min(first_ns, inner.first_ns);
    last_ns = std::max(last_ns, inner.last_ns);
  }
};

// Gives the work that a thread launched to the slices of one of its tracks.
class Projection {
 public:
  Projection(const Slices& slices, std::vector<DeviceTime>& by_kind) : slices_(slices), by_kind_(by_kind) {}

  void run(const std::vector<Launched>& launches) {
    for (const Launched& launched : launches) {
      open_until(launched.launch_ns);
      if (open_.empty()) continue;
      open_.back().add({.operations = 1,
                        .work_ns = launched.end_ns - launched.start_ns,
                        .first_ns = launched.start_ns,
                        .last_ns = launched.end_ns});
    }
    while (!open_.empty()) close();
  }

 private:
  // Opens the slices that start by then, and closes those that end by then.
  void open_until(std::int64_t ns) {
    for (; next_ < slices_.size() && slices_.start_ns[next_] <= ns; ++next_) {
      close_until(slices_.start_ns[next_]);
      open_.push_back({.end_ns = slices_.end_ns(next_), .kind = slices_.kind[next_]});
    }
    close_until(ns);
  }
  void close_until(std::int64_t ns) {
    while (!open_.empty() && open_.back().end_ns <= ns) close();
  }
  void close() {
    const Open closed = open_.back();
    open_.pop_back();
    if (closed.operations == 0) return;
    DeviceTime& time = by_kind_[closed.kind];
    time.operations += closed.operations;
    time.work_ns += closed.work_ns;
    time.projected_ns += closed.last_ns - closed.first_ns;
    if (!open_.empty()) open_.back().add(closed);
  }

  const Slices& slices_;
  std::vector<DeviceTime>& by_kind_;
  std::size_t next_ = 0;
  std::vector<Open> open_;
};

std::int64_t total_ns_of(const RangeStatistics& range) { return range.durations.sum_ns(); }

}  // namespace range_projection

std::vector<RangeStatistics> range_statistics(const Trace& trace, const Rank& rank, const Correlations* correlations) {
  using namespace range_projection;
  std::vector<DurationSketch> durations(trace.kinds.size());
  std::vector<DeviceTime> device(trace.kinds.size());
  for (const Track& track : rank.tracks) {
    if (!is_counted(track)) continue;
    const Slices& slices = track.slices;
    for (std::size_t i = 0; i < slices.size(); ++i) durations[slices.kind[i]].add(slices.duration_ns[i]);
  }
  if (correlations != nullptr) {
    const auto launches = launches_by_thread(trace, rank, *correlations);
    for (const Track& track : rank.tracks) {
      const auto of_thread = launches.find(track.thread_id);
      if (track.kind != TrackKind::thread || of_thread == launches.end()) continue;
      Projection(track.slices, device).run(of_thread->second);
    }
  }
  std::vector<RangeStatistics> rows;
  for (KindId kind = 0; kind < durations.size(); ++kind) {
    if (durations[kind].count() == 0) continue;
    const Kind& of = trace.kinds[kind];
    rows.push_back({trace.names[of.domain], trace.names[of.category], trace.names[of.name], std::move(durations[kind]),
                    device[kind]});
  }
  std::ranges::stable_sort(rows, std::ranges::greater{}, total_ns_of);
  return rows;
}

std::vector<RangeStatistics> merged_ranges(std::vector<const std::vector<RangeStatistics>*> ranks) {
  using namespace range_projection;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, RangeStatistics> by_name;
  for (const std::vector<RangeStatistics>* rank : ranks) {
    for (const RangeStatistics& range : *rank) {
      RangeStatistics& sum = by_name[{range.domain, range.category, range.name}];
      if (sum.durations.count() == 0) {
        sum = range;
        continue;
      }
      sum.durations.merge(range.durations);
      sum.device.operations += range.device.operations;
      sum.device.work_ns += range.device.work_ns;
      sum.device.projected_ns += range.device.projected_ns;
    }
  }
  std::vector<RangeStatistics> rows;
  for (auto& [name, range] : by_name) rows.push_back(std::move(range));
  std::ranges::stable_sort(rows, std::ranges::greater{}, total_ns_of);
  return rows;
}

}  // namespace paceline::analysis
