// SPDX-License-Identifier: Apache-2.0
// MPI's windows and files. Each has a number for events, which is recorded when the object is created.
#pragma once

#include "profiler/inject/sources/mpi/arguments.h"

namespace paceline::inject {

// The number of the window or file that the call uses or frees; 0 = unknown. Lock-free.
std::uint32_t window_number(const Arguments& call);
std::uint32_t file_number(const Arguments& call);

// Called after a call that created a window or opened a file, and before a call that frees or closes it.
void note_object(const Arguments& call);
void forget_object(const Arguments& call);

}  // namespace paceline::inject
