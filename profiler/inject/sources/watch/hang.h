// Looks whether the program still makes progress: an iteration, or a collective, ends now and then. Where none has for
// --hang SECONDS, one line on standard error says so. An MPI call that has been open so long, or an iteration that is
// open, may be a hang: the line names it, and a flight recorder writes out what it holds. A program in which neither is
// open computes, reads or writes, before its first iteration or after its last: it is only said to be quiet.
#pragma once

#include <cstdint>

#include "profiler/inject/core/writer.h"

namespace paceline::inject {

void note_progress_slowly();
void note_iteration_slowly(bool open);

// An iteration began or ended, or a collective ended. From the first one on the drain looks. One relaxed load where
// nobody asked for it.
inline void note_progress() {
  if (gate.hang.load(std::memory_order_relaxed) != 0) [[unlikely]]
    note_progress_slowly();
}
inline void note_iteration(bool open) {
  if (gate.hang.load(std::memory_order_relaxed) != 0) [[unlikely]]
    note_iteration_slowly(open);
}

// Before the file is opened.
void start_hang_watch();

// The program is done with its work: MPI_Finalize begins, where a rank may wait for others that are not.
void end_hang_watch();

// By the drain, about once a second.
void look_for_hang();

}  // namespace paceline::inject
