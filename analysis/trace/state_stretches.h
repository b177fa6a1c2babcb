// SPDX-License-Identifier: Apache-2.0
// The states of a thread as stretches of time, one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "analysis/trace/thread_states.h"

namespace paceline::analysis {

enum class ThreadState : std::uint8_t { running, waiting, blocked };

constexpr std::string_view thread_state_name(ThreadState state) {
  constexpr std::string_view names[] = {"running", "waiting", "blocked"};
  return names[static_cast<std::size_t>(state)];
}

// Calls visit(state, start in ns, duration in ns) for each stretch, in the order of time. Neighbours have different
// states where `states` are exact. Where they are not, only the durations between two entries are known: the thread is
// taken to wait first, then to run, then to be blocked. Cost: linear.
template <class Visit>
void each_state(const ThreadStates& states, Visit visit) {
  for (std::size_t i = 1; i < states.size(); ++i) {
    std::int64_t start_ns = states.time_ns[i - 1];
    const auto give = [&](ThreadState state, std::int64_t duration_ns) {
      duration_ns = std::clamp<std::int64_t>(duration_ns, 0, states.time_ns[i] - start_ns);
      if (duration_ns > 0) visit(state, start_ns, duration_ns);
      start_ns += duration_ns;
    };
    give(ThreadState::waiting, states.waiting_ns[i] - states.waiting_ns[i - 1]);
    give(ThreadState::running, states.running_ns[i] - states.running_ns[i - 1]);
    give(ThreadState::blocked, states.time_ns[i] - start_ns);
  }
}

}  // namespace paceline::analysis
