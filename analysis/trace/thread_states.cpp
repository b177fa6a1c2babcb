// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace/thread_states.h"

#include <algorithm>

namespace paceline::analysis {
namespace thread_states_details {

struct Sums {
  double running_ns, waiting_ns;
};

// The sums at a time between the first entry and the last.
Sums sums_at(const ThreadStates& states, std::int64_t time_ns) {
  const auto after = std::ranges::upper_bound(states.time_ns, time_ns);
  const auto at = static_cast<std::size_t>(after - states.time_ns.begin()) - 1;
  const auto sum_of = [&](const std::vector<std::int64_t>& sums) {
    if (at + 1 == states.size()) return static_cast<double>(sums[at]);
    const auto share = static_cast<double>(time_ns - states.time_ns[at]) /
                       static_cast<double>(states.time_ns[at + 1] - states.time_ns[at]);
    return static_cast<double>(sums[at]) + share * static_cast<double>(sums[at + 1] - sums[at]);
  };
  return {sum_of(states.running_ns), sum_of(states.waiting_ns)};
}

}  // namespace thread_states_details

CpuTimes cpu_times(const ThreadStates& states, std::int64_t begin_ns, std::int64_t end_ns) {
  if (states.empty()) return {};
  begin_ns = std::max(begin_ns, states.time_ns.front());
  end_ns = std::min(end_ns, states.time_ns.back());
  if (begin_ns >= end_ns) return {};
  const auto begin = thread_states_details::sums_at(states, begin_ns);
  const auto end = thread_states_details::sums_at(states, end_ns);
  CpuTimes times;
  times.known_ns = static_cast<double>(end_ns - begin_ns);
  times.running_ns = end.running_ns - begin.running_ns;
  times.waiting_ns = end.waiting_ns - begin.waiting_ns;
  times.blocked_ns = std::max(0.0, times.known_ns - times.running_ns - times.waiting_ns);
  return times;
}

}  // namespace paceline::analysis
