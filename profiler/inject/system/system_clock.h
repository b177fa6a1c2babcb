// SPDX-License-Identifier: Apache-2.0
// The system's clocks, read past any library that takes the place of clock_gettime.
#pragma once

#include <time.h>

#include <cstdint>
#include <limits>

namespace paceline::inject {

// Called when the library is loaded. Finds out whether another library has replaced the system's clock_gettime, as
// libfaketime does. From then on the recorder asks the system itself.
void look_for_replaced_clock();

// Nanoseconds of a system clock.
std::int64_t true_ns(clockid_t clock);

// A time that does not come.
inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

inline std::int64_t monotonic_ns() { return true_ns(CLOCK_MONOTONIC); }

}  // namespace paceline::inject
