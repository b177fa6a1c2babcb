// SPDX-License-Identifier: Apache-2.0
// Switches of sources that are checked while an event is recorded: one relaxed load each. They lie in the page of the
// gate (buffer/writer.h), which the kernel wipes in a forked child, so that all of them are off there.
#pragma once

#include "profiler/inject/buffer/writer.h"

namespace paceline::inject {

enum class SourceFlag : unsigned { follows_iterations, follows_progress };

inline bool is_on(SourceFlag flag) {
  return gate.source_flags[static_cast<unsigned>(flag)].load(std::memory_order_relaxed) != 0;
}
inline void switch_flag(SourceFlag flag, bool on) {
  gate.source_flags[static_cast<unsigned>(flag)].store(on, std::memory_order_relaxed);
}

}  // namespace paceline::inject
