// SPDX-License-Identifier: Apache-2.0
// Definitions: events that later events refer to, such as domains and schemas. The file of a forked child must repeat
// them, because the child continues to use its parent's handles.
#pragma once

#include <cstdint>
#include <span>

#include "profiler/inject/buffer/writer.h"

namespace paceline::inject {

// Writes a definition or another rare event, and waits up to 1 s for a chunk before it drops the event. Definitions are
// remembered for the files of forked children.
bool emit_surely(EventType type, std::uint64_t low, std::span<const Slot> extension = {});
inline bool emit_surely(EventType type, std::uint64_t low, const Slot& extension) {
  return emit_surely(type, low, std::span(&extension, 1));
}

// In a forked child: writes all definitions that were remembered into its file.
void repeat_definitions();

}  // namespace paceline::inject
