// SPDX-License-Identifier: Apache-2.0
// Which processes of a job are recorded. Every process that `paceline record` starts is recorded, whether directly or
// through scripts and launchers. A process that descends from a recorded one with the same rank is its child: its
// events belong to that rank. Workers are recorded: children that were forked, and children that run the same program
// (Python's `spawn`). Children that run another program are recorded with --children only. A descendant with a rank of
// its own in its environment, as torchrun's workers have, is not a child. A process that replaces itself (exec) is not
// one either.
#pragma once

#include <sys/types.h>

namespace paceline::inject {

// Looks for a recorded process among the ancestors, in their /proc/PID/maps. Returns false if this process is not to be
// recorded. Sets recorded_parent().
bool find_out_whether_recorded();

// The recorded process whose child this one is; 0 if there is none.
pid_t recorded_parent();
// Where one line of a job is enough: in rank 0, and not in its children.
bool speaks_for_the_job();

// In a forked child of a recorded process, before it opens its own file.
void become_child_of(pid_t parent);

}  // namespace paceline::inject
