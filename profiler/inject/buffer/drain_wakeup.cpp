// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/buffer/drain_wakeup.h"

#include "profiler/inject/system/futex.h"

namespace paceline::inject {

DrainState drain_state;

void wake_drain() {
  // One wake-up is enough for any number of full chunks.
  if (drain_state.sleeping.exchange(false, std::memory_order_seq_cst)) wake_drain_surely();
}

void wake_drain_surely() {
  drain_state.wakeups.fetch_add(1, std::memory_order_release);
  wake_one(drain_state.wakeups);
}

}  // namespace paceline::inject
