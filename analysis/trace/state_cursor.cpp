// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace/state_cursor.h"

namespace paceline::analysis {

CpuTimes cpu_times(const ThreadStates& states, std::int64_t begin_ns, std::int64_t end_ns) {
  if (begin_ns >= end_ns) return {};
  return StateCursor(states, begin_ns).until(end_ns);
}

ThreadStates each_nth(const ThreadStates& states, std::size_t n) {
  ThreadStates chosen;
  for (std::size_t i = 0; i < states.size(); i = i + 1 == states.size() ? i + 1 : std::min(i + n, states.size() - 1)) {
    chosen.time_ns.push_back(states.time_ns[i]);
    chosen.running_ns.push_back(states.running_ns[i]);
    chosen.waiting_ns.push_back(states.waiting_ns[i]);
  }
  return chosen;
}

}  // namespace paceline::analysis
