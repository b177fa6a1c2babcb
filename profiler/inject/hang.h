// Looks whether the program still makes progress: an iteration, or a collective, ends now and then. Where none has for
// --hang SECONDS, one line on standard error says which call is open, and a flight recorder writes out what it holds.
#pragma once

#include <cstdint>

#include "profiler/inject/recorder.h"

namespace paceline::inject {

void note_progress_slowly();

// An iteration began or ended, or a collective ended. From the first one on the drain looks. One relaxed load where
// nobody asked for it.
inline void note_progress() {
  if (gate.hang.load(std::memory_order_relaxed) != 0) [[unlikely]]
    note_progress_slowly();
}

// Before the file is opened.
void start_hang_watch();

// The program is done with its work: MPI_Finalize has ended.
void end_hang_watch();

// By the drain, about once a second.
void look_for_hang();

}  // namespace paceline::inject
