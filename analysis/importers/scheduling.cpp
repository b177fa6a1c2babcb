// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/scheduling.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace paceline::analysis {
namespace scheduling {

struct Segment {
  std::int64_t begin_ns = 0, end_ns = 0;
  ThreadActivity does = ThreadActivity::unknown;
  double woken_wait_ns = 0;  // at the end of a blocked one
};

// What lies between two readings.
struct Window {
  std::int64_t begin_ns = 0, end_ns = 0;
  double running_ns = 0, waiting_ns = 0;              // the rise of the sums, fitted to the time
  double counted_ns = 0;                              // the rise of the waits, as the system counted it
  double known_running_ns = 0, known_waiting_ns = 0;  // by the switches
  double unknown_ns = 0;                              // the time without known switches
};

// A sum cannot fall (a reading may hold an earlier one of two sums), and it cannot rise faster than the time: what a
// wait has too much reaches back into the windows before.
std::vector<Window> windows_of(std::span<const ThreadReading> given) {
  if (given.size() < 2) return {};
  std::vector<ThreadReading> readings(given.begin(), given.end());
  for (std::size_t i = 1; i < readings.size(); ++i) {
    readings[i].running_ns = std::max(readings[i].running_ns, readings[i - 1].running_ns);
    readings[i].waiting_ns = std::max(readings[i].waiting_ns, readings[i - 1].waiting_ns);
  }
  std::vector<Window> windows(readings.size() - 1);
  double running_over = 0, waiting_over = 0;
  for (std::size_t i = windows.size(); i-- > 0;) {
    const ThreadReading &before = readings[i], &after = readings[i + 1];
    Window& window = windows[i];
    window.begin_ns = before.time_ns;
    window.end_ns = after.time_ns;
    const auto length = static_cast<double>(after.time_ns - before.time_ns);
    window.counted_ns = static_cast<double>(after.waiting_ns) - static_cast<double>(before.waiting_ns);
    const double running =
        running_over + static_cast<double>(after.running_ns) - static_cast<double>(before.running_ns);
    window.running_ns = std::min(running, length);
    running_over = running - window.running_ns;
    const double waiting = waiting_over + window.counted_ns;
    window.waiting_ns = std::min(waiting, length - window.running_ns);
    waiting_over = waiting - window.waiting_ns;
  }
  return windows;
}

std::vector<Segment> segments_of(std::span<const ThreadSwitch> switches, std::int64_t begin_ns, std::int64_t end_ns) {
  std::vector<Segment> segments;
  const auto add = [&](std::int64_t from, std::int64_t to, ThreadActivity does) {
    if (to <= from) return;
    if (!segments.empty() && segments.back().does == does) {
      segments.back().end_ns = to;
    } else {
      segments.push_back({from, to, does});
    }
  };
  if (switches.empty()) {
    add(begin_ns, end_ns, ThreadActivity::unknown);
    return segments;
  }
  // A thread that leaves a CPU ran before.
  const bool ran = switches[0].does == ThreadActivity::waiting || switches[0].does == ThreadActivity::blocked;
  add(begin_ns, switches[0].time_ns, ran ? ThreadActivity::running : ThreadActivity::unknown);
  for (std::size_t i = 0; i < switches.size(); ++i) {
    if (switches[i].does == ThreadActivity::ended) break;
    add(switches[i].time_ns, i + 1 < switches.size() ? switches[i + 1].time_ns : end_ns, switches[i].does);
  }
  return segments;
}

// Calls visit(window, segment, overlap in ns) for all that overlap.
template <class Visit>
void each_overlap(std::vector<Window>& windows, const std::vector<Segment>& segments, Visit visit) {
  std::size_t w = 0;
  for (const Segment& segment : segments) {
    while (w < windows.size() && windows[w].end_ns <= segment.begin_ns) ++w;
    for (std::size_t at = w; at < windows.size() && windows[at].begin_ns < segment.end_ns; ++at) {
      const std::int64_t from = std::max(windows[at].begin_ns, segment.begin_ns);
      const std::int64_t to = std::min(windows[at].end_ns, segment.end_ns);
      if (to > from) visit(windows[at], segment, static_cast<double>(to - from));
    }
  }
}

// A thread that was woken seldom waits for longer: the slices of Linux's schedulers have 0.7 to 4 ms. So a block of
// 300 ms is not more likely to have ended with a wait than one of 5 ms.
constexpr double long_wait_ns = 5e6;

// Puts the waits after wake-ups at the ends of blocked segments.
void place_woken_waits(const std::vector<Window>& windows, std::vector<Segment>& segments) {
  std::size_t first = 0;
  for (const Window& window : windows) {
    while (first < segments.size() && segments[first].end_ns <= window.begin_ns) ++first;
    double counted = 0, blocked = 0, likely = 0;
    std::size_t end = first;
    for (; end < segments.size() && segments[end].end_ns <= window.end_ns; ++end) {
      const auto length = static_cast<double>(segments[end].end_ns - segments[end].begin_ns);
      if (segments[end].does == ThreadActivity::waiting) counted += length;
      if (segments[end].does != ThreadActivity::blocked) continue;
      blocked += length;
      likely += std::min(length, long_wait_ns);
    }
    // What is not known takes its part of the waits itself.
    const double rest = std::min(window.counted_ns - counted, blocked);
    if (rest <= 0 || window.unknown_ns > 0) continue;
    for (std::size_t s = first; s < end; ++s) {
      if (segments[s].does != ThreadActivity::blocked) continue;
      const auto length = static_cast<double>(segments[s].end_ns - segments[s].begin_ns);
      segments[s].woken_wait_ns =
          rest <= likely ? rest * std::min(length, long_wait_ns) / likely : rest * length / blocked;
    }
  }
}

class Sums {
 public:
  Sums(ThreadStates& states, std::int64_t begin_ns) : states_(states) { put(begin_ns); }

  void add(std::int64_t until_ns, double running_ns, double waiting_ns) {
    running_ += running_ns;
    waiting_ += waiting_ns;
    if (until_ns > states_.time_ns.back()) put(until_ns);
  }

 private:
  void put(std::int64_t time_ns) {
    states_.time_ns.push_back(time_ns);
    states_.running_ns.push_back(std::llround(running_));
    states_.waiting_ns.push_back(std::llround(waiting_));
  }

  ThreadStates& states_;
  double running_ = 0, waiting_ = 0;
};

// A thread that is on a virtual CPU does not run while the host runs something else there. The kernel leaves such time
// out of the running time (steal time), so where the sum rose by less than the switches show, the rest is a wait for a
// CPU. Smaller differences come from the readings.
constexpr double least_stolen_ns = 2e5;

void add_running(const Segment& segment, const std::vector<Window>& windows, Sums& sums) {
  auto window = std::ranges::upper_bound(windows, segment.begin_ns, {}, &Window::end_ns);
  std::int64_t at = segment.begin_ns;
  const auto add = [&](std::int64_t until, double stolen_share) {
    const auto length = static_cast<double>(until - at);
    sums.add(until, (1 - stolen_share) * length, stolen_share * length);
    at = until;
  };
  for (; window != windows.end() && window->begin_ns < segment.end_ns; ++window) {
    const double stolen = window->known_running_ns - window->running_ns;
    if (stolen < least_stolen_ns || window->unknown_ns > 0) continue;
    if (window->begin_ns > at) add(window->begin_ns, 0);
    add(std::min(window->end_ns, segment.end_ns), stolen / window->known_running_ns);
  }
  if (at < segment.end_ns) add(segment.end_ns, 0);
}

void add_unknown(const Segment& segment, const std::vector<Window>& windows, Sums& sums) {
  auto window = std::ranges::upper_bound(windows, segment.begin_ns, {}, &Window::end_ns);
  std::int64_t at = segment.begin_ns;
  for (; window != windows.end() && window->begin_ns < segment.end_ns; ++window) {
    at = std::max(at, window->begin_ns);
    const std::int64_t to = std::min(window->end_ns, segment.end_ns);
    if (to <= at || window->unknown_ns <= 0) continue;
    const double share = static_cast<double>(to - at) / window->unknown_ns;
    const double running = std::clamp(window->running_ns - window->known_running_ns, 0.0, window->unknown_ns);
    const double waiting = std::clamp(window->waiting_ns - window->known_waiting_ns, 0.0, window->unknown_ns - running);
    sums.add(to, share * running, share * waiting);
    at = to;
  }
  sums.add(segment.end_ns, 0, 0);
}

}  // namespace scheduling

ThreadStates thread_states_of(std::span<const ThreadSwitch> switches, std::span<const ThreadReading> readings) {
  using namespace scheduling;
  ThreadStates states;
  if (switches.empty() && readings.size() < 2) return states;
  std::int64_t begin_ns = switches.empty() ? readings.front().time_ns : switches.front().time_ns;
  std::int64_t end_ns = switches.empty() ? readings.back().time_ns : switches.back().time_ns;
  if (!readings.empty()) {
    begin_ns = std::min(begin_ns, readings.front().time_ns);
    end_ns = std::max(end_ns, readings.back().time_ns);
  }
  std::vector<Window> windows = windows_of(readings);
  std::vector<Segment> segments = segments_of(switches, begin_ns, end_ns);
  if (segments.empty()) return states;
  each_overlap(windows, segments, [](Window& window, const Segment& segment, double overlap_ns) {
    if (segment.does == ThreadActivity::running) window.known_running_ns += overlap_ns;
    if (segment.does == ThreadActivity::waiting) window.known_waiting_ns += overlap_ns;
    if (segment.does == ThreadActivity::unknown) window.unknown_ns += overlap_ns;
  });
  place_woken_waits(windows, segments);
  Sums sums(states, segments.front().begin_ns);
  for (const Segment& segment : segments) {
    const auto length = static_cast<double>(segment.end_ns - segment.begin_ns);
    switch (segment.does) {
      case ThreadActivity::running:
        add_running(segment, windows, sums);
        break;
      case ThreadActivity::waiting:
        sums.add(segment.end_ns, 0, length);
        break;
      case ThreadActivity::unknown:
        add_unknown(segment, windows, sums);
        break;
      default:
        sums.add(segment.end_ns - std::llround(segment.woken_wait_ns), 0, 0);
        sums.add(segment.end_ns, 0, segment.woken_wait_ns);
    }
  }
  states.exact = !switches.empty() && std::ranges::none_of(switches, [](const ThreadSwitch& one) {
    return one.does == ThreadActivity::unknown;
  });
  return states;
}

}  // namespace paceline::analysis
