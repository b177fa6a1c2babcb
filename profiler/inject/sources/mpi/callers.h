// SPDX-License-Identifier: Apache-2.0
// Who calls an MPI function under its PMPI name.
//
// Another tool that stands before the recorder (call.h) calls PMPI_Send for two reasons: its MPI_Send passes the
// program's call on, or it sends a message of its own. The stack shows which: the innermost MPI function above the call
// is MPI_Send in the first case, and another one or none in the second. A place inside an MPI function has one purpose,
// so it is looked at once. A place in a helper function may serve both, so the stack is walked at each call.
//
// The wrapper may have ended by then, if the compiler made the call the last jump of MPI_Send, or may have no name that
// the dynamic linker knows. So a call without an MPI function above it is the program's wherever a tool has a wrapper
// of that name before the recorder's.
#pragma once

#include "profiler/format/mpi_functions.h"

namespace paceline::inject {

enum class MpiCaller : int {
  program,  // through a tool's wrapper, or through Fortran functions of the MPI library that the recorder has not
            // wrapped
  tool,     // on its own behalf, or a program that calls PMPI functions itself
  library,  // the MPI library
};

// `site`: where the function `id` under the name `symbol` ("PMPI_Send", "pmpi_send_") is called. `real`: the MPI
// library's own function. Cost: one look into a table; for a place in a helper function of a tool, and for one
// that is not in the table, microseconds, with memory allocated.
MpiCaller find_caller(const void* site, const char* symbol, const void* real, format::MpiId id);

}  // namespace paceline::inject
