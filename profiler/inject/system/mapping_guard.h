// SPDX-License-Identifier: Apache-2.0
// Keeps a program alive when another program truncates its trace file during the recording.
//
// Events are stored into a mapping of the file. Storing to a page that the file no longer has raises SIGBUS, which ends
// the program. A handler replaces the missing pages with private memory and reports the loss. It passes every other
// SIGBUS on to the handler that was installed before. The guard does not help in two cases: a thread that blocks
// SIGBUS, and a program that installs a handler of its own after MPI_Init (or, without MPI, after its first event).
#pragma once

#include <cstddef>

namespace paceline::inject {

// Guards this mapping, which replaces an earlier one. The signal handler calls page_is_missing() when the mapping has
// lost pages.
void guard_mapping(void* begin, std::size_t bytes, void (*page_is_missing)());

// MPI libraries install their own handlers in MPI_Init only if there is none yet. So the guard is suspended during
// MPI_Init.
void suspend_mapping_guard();
void resume_mapping_guard();

}  // namespace paceline::inject
