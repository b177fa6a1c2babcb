// SPDX-License-Identifier: Apache-2.0
// Reads what a thread did from one time to the next, as a picture with a column for each stretch of time needs it.
#pragma once

#include <algorithm>

#include "analysis/trace/thread_states.h"

namespace paceline::analysis {

class StateCursor {
 public:
  // `states` has to outlive the cursor. The first stretch begins at from_ns.
  StateCursor(const ThreadStates& states, std::int64_t from_ns) : states_(states) { sums_ = sums_at(from_ns); }

  // The times of the thread from the end of the last stretch to to_ns, which is not before it; of a part of the time
  // between two entries, its share. O(log n) of the entries in the stretch.
  CpuTimes until(std::int64_t to_ns) {
    const Sums before = sums_;
    sums_ = sums_at(to_ns);
    CpuTimes times;
    times.known_ns = sums_.known_ns - before.known_ns;
    times.running_ns = sums_.running_ns - before.running_ns;
    times.waiting_ns = sums_.waiting_ns - before.waiting_ns;
    times.blocked_ns = std::max(0.0, times.known_ns - times.running_ns - times.waiting_ns);
    return times;
  }

 private:
  struct Sums {
    double known_ns = 0, running_ns = 0, waiting_ns = 0;
  };

  Sums sums_at(std::int64_t time_ns) {
    if (states_.empty()) return {};
    const auto& times = states_.time_ns;
    time_ns = std::clamp(time_ns, times.front(), times.back());
    entry_ = last_until(time_ns);
    const double known_ns = static_cast<double>(time_ns - times.front());
    if (entry_ + 1 == times.size()) return {known_ns, sum(states_.running_ns, 0), sum(states_.waiting_ns, 0)};
    const double share =
        static_cast<double>(time_ns - times[entry_]) / static_cast<double>(times[entry_ + 1] - times[entry_]);
    return {known_ns, sum(states_.running_ns, share), sum(states_.waiting_ns, share)};
  }
  // The last entry that is not after the time. It is at least entry_, and often as far from it as that was from the one
  // before. From there, steps that double find a stretch to search: each look at the entries of a long run is a miss of
  // the cache.
  std::size_t last_until(std::int64_t time_ns) {
    const auto& times = states_.time_ns;
    std::size_t first = entry_, after = std::min(entry_ + advance_, times.size() - 1), step = 1;
    if (times[after] <= time_ns) {
      first = after;
      for (; first + step < times.size() && times[first + step] <= time_ns; step *= 2) first += step;
      after = std::min(first + step, times.size());
    } else {
      for (; after - first > step && times[after - step] > time_ns; step *= 2) after -= step;
      first = after - first > step ? after - step : first;
    }
    const auto begin = times.begin();
    const auto found = static_cast<std::size_t>(
        std::upper_bound(begin + std::ptrdiff_t(first), begin + std::ptrdiff_t(after), time_ns) - begin - 1);
    advance_ = found - entry_;
    return found;
  }
  // The sum at this share of the time from the entry to the next one.
  double sum(const std::vector<std::int64_t>& sums, double share) const {
    const auto at_entry = static_cast<double>(sums[entry_]);
    return share == 0 ? at_entry : at_entry + share * static_cast<double>(sums[entry_ + 1] - sums[entry_]);
  }

  const ThreadStates& states_;
  std::size_t entry_ = 0, advance_ = 0;
  Sums sums_;
};

// Each n-th entry and the last one: the same sums, known at fewer times.
ThreadStates each_nth(const ThreadStates& states, std::size_t n);

}  // namespace paceline::analysis
