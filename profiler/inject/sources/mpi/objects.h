// MPI's windows and files: a number for events, told with what it is when the object is made.
#pragma once

#include "profiler/inject/sources/mpi/call.h"

namespace paceline::inject {

// Of the window or file that the call is on (or frees); 0 = not known. Lock-free.
std::uint32_t window_number(const Arguments& call);
std::uint32_t file_number(const Arguments& call);

// After a call that made a window or opened a file, and before one that frees or closes it.
void note_object(const Arguments& call);
void forget_object(const Arguments& call);

}  // namespace paceline::inject
