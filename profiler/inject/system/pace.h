// SPDX-License-Identifier: Apache-2.0
// How often a thread of the recorder does something that costs CPU time: as often as is wanted, or so often that it
// uses no more than a part of a CPU.
#pragma once

#include <algorithm>
#include <cstdint>

namespace paceline::inject {

struct Pace {
  std::int64_t wanted_ns = 0;  // the interval, 0 = never
  std::int64_t part = 100;     // a turn may cost 1/part of the interval
  std::int64_t cost_ns = 0;    // of a turn, smoothed

  // What is dear once, such as the first look at a large library, counts little.
  void add_cost(std::int64_t ns) {
    constexpr std::int64_t least_ns = 50'000;
    cost_ns += (std::min(ns, 2 * cost_ns + least_ns) - cost_ns) / 8;
  }

  // At least the wanted interval, and a second at most unless more is wanted.
  std::int64_t interval_ns() const {
    constexpr std::int64_t second = 1'000'000'000;
    return std::clamp(cost_ns * part, wanted_ns, std::max(second, wanted_ns));
  }
};

}  // namespace paceline::inject
