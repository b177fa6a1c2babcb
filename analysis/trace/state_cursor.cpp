// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace/state_cursor.h"

namespace paceline::analysis {

CpuTimes cpu_times(const ThreadStates& states, std::int64_t begin_ns, std::int64_t end_ns) {
  if (begin_ns >= end_ns) return {};
  return StateCursor(states, begin_ns).until(end_ns);
}

}  // namespace paceline::analysis
