// Keeps a program alive whose trace file is cut short by somebody else while it is recorded.
//
// Events are stored into a mapping of the file. Storing to a page that the file no longer has raises SIGBUS, which ends
// the program. A handler puts private memory in the place of such pages and ends the recording. It passes every other
// SIGBUS on to the handler that was there before. Two cases stay beyond it: a thread that blocks SIGBUS, and a program
// that installs a handler of its own after MPI_Init (or, without MPI, after its first event).
#pragma once

#include <cstddef>

namespace paceline::inject {

// Guards this mapping, in place of an earlier one.
void guard_mapping(void* begin, std::size_t bytes);

// MPI libraries install their own handlers in MPI_Init, unless they find one: the guard steps aside meanwhile.
void suspend_mapping_guard();
void resume_mapping_guard();

// True once the file has lost pages. Safe in a signal handler.
bool file_is_cut();
// The drain saw it before any thread did.
void note_that_file_is_cut();

}  // namespace paceline::inject
