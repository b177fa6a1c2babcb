// SPDX-License-Identifier: Apache-2.0
// What the scheduler did with a thread: how long it ran, how long it was ready to run and had no CPU, and how long it
// was blocked.
//
// All sources come down to two sums over time, that of the running time and that of the waiting time. Where each switch
// was recorded there is an entry at every switch, and between two entries a thread did one thing. Where only the sums
// of the system were read (schedstat's), an entry stands for each reading, and of a part of the time between two
// readings the share is known, not the place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace paceline::analysis {

struct ThreadStates {
  std::vector<std::int64_t> time_ns;     // rising
  std::vector<std::int64_t> running_ns;  // on a CPU since time_ns[0]; never falls, and not faster than the time
  std::vector<std::int64_t> waiting_ns;  // ready to run and without a CPU, likewise
  bool exact = false;                    // an entry at each switch

  std::size_t size() const { return time_ns.size(); }
  bool empty() const { return time_ns.empty(); }
};

// A stretch of a thread's time. What the states do not cover is in none of the three, and `known_ns` is their sum.
struct CpuTimes {
  double known_ns = 0, running_ns = 0, waiting_ns = 0, blocked_ns = 0;
};

// The times of a thread within [begin_ns, end_ns); of a part of the time between two entries, its share. O(log n).
CpuTimes cpu_times(const ThreadStates& states, std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace paceline::analysis
