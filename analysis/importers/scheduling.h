// SPDX-License-Identifier: Apache-2.0
// From what recorders write about a thread's scheduling to the states of the model (trace/thread_states.h).
#pragma once

#include <cstdint>
#include <span>

#include "analysis/trace/thread_states.h"

namespace paceline::analysis {

enum class ThreadActivity : std::uint8_t { unknown, running, waiting, blocked, ended };

// What a thread does from a time on. blocked: it left its CPU because it could not go on.
struct ThreadSwitch {
  std::int64_t time_ns = 0;
  ThreadActivity does = ThreadActivity::unknown;
};

// The system's sums for a thread. A wait counts when it ends.
struct ThreadReading {
  std::int64_t time_ns = 0;
  std::int64_t running_ns = 0, waiting_ns = 0;
};

// Both sorted by time; either may be empty. Where switches are known they give the states. A wait after a thread was
// woken is in no switch: in each stretch between two readings, what the sum of waits rose by beyond the waits that the
// switches show lies at the ends of the blocked stretches, in proportion to their lengths up to 5 ms. Time that the
// host of a virtual machine took from a running thread counts as a wait. Where switches are not known, and before the
// first one, the sums give the shares of the time between two readings; a wait that is longer than that reaches back.
// `exact` is true if there are switches and none of them says `unknown`. Cost: linear.
ThreadStates thread_states_of(std::span<const ThreadSwitch> switches, std::span<const ThreadReading> readings);

}  // namespace paceline::analysis
