// SPDX-License-Identifier: Apache-2.0
#include "analysis/device/launches.h"

#include <algorithm>
#include <utility>

#include "analysis/device/gpu.h"

namespace paceline::analysis {
namespace launch_parts {

constexpr std::int64_t slow_call_ns = 50'000, late_start_ns = 100'000;

struct Change {
  std::int64_t time_ns = 0;
  int by = 0;
};

Distribution queue_length(std::vector<Change>& changes) {
  std::ranges::stable_sort(changes, {}, &Change::time_ns);
  std::vector<std::int64_t> lengths;
  lengths.reserve(changes.size());
  std::int64_t length = 0;
  for (const Change& change : changes) lengths.push_back(length += change.by);
  return distribution_of(std::move(lengths));
}

}  // namespace launch_parts

std::optional<Launches> launches_of(const Rank& rank, const Correlations& correlations) {
  using launch_parts::Change;
  Launches out;
  std::vector<std::int64_t> calls, works, delays;
  for (const Stream& stream : streams_of(rank)) {
    std::vector<Change> begins, starts;
    for (const Track* track : stream.tracks) {
      for (std::size_t i = 0; i < track->slices.size(); ++i) {
        const auto callers = correlations.calls_of(track->slices, i);
        if (callers.empty()) continue;
        const Slices& slices = rank.tracks[callers.front().track].slices;  // the outer call
        const std::size_t call = callers.front().slice;
        const std::int64_t start_ns = track->slices.start_ns[i], work_ns = track->slices.duration_ns[i];
        const std::int64_t call_ns = slices.duration_ns[call];
        const std::int64_t delay_ns = std::max<std::int64_t>(start_ns - slices.end_ns(call), 0);
        begins.push_back({slices.start_ns[call], 1});
        starts.push_back({start_ns, -1});
        calls.push_back(call_ns), works.push_back(work_ns), delays.push_back(delay_ns);
        out.statistics.slow_calls += call_ns > launch_parts::slow_call_ns;
        out.statistics.late_starts += delay_ns > launch_parts::late_start_ns;
        out.statistics.short_work += call_ns <= launch_parts::slow_call_ns && work_ns < call_ns;
      }
    }
    if (begins.empty()) continue;
    begins.insert(begins.end(), starts.begin(), starts.end());  // at equal times a call comes before a start
    out.queues.push_back({stream.name, launch_parts::queue_length(begins)});
  }
  if (calls.empty()) return std::nullopt;
  out.statistics.call_ns = distribution_of(std::move(calls));
  out.statistics.gpu_ns = distribution_of(std::move(works));
  out.statistics.delay_ns = distribution_of(std::move(delays));
  return out;
}

}  // namespace paceline::analysis
