// Which processes of a job are recorded. Everything that `paceline record` starts is, directly or by way of scripts and
// launchers; but of a process that is recorded itself (has a trace file mapped) the children only with --children, or
// where they have a rank of their own in the environment, as torchrun's workers do. A process that replaces itself
// (exec) is no child.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>

#include "profiler/format/event.h"

namespace paceline::inject {

// Looks for a recorded process among the ancestors: reads their /proc/PID/maps. False: this process is not to be
// recorded.
bool find_out_whether_recorded();

// The recorded process that this one is a child of; 0 if none.
pid_t recorded_parent();
void become_child_of(pid_t parent);

// What the file of a forked child must repeat, because handles of the parent's go on in it. Kept only with --children.
void remember_definition(format::EventType type, std::uint64_t low, std::span<const format::Slot> extension);
void repeat_definitions();

}  // namespace paceline::inject
