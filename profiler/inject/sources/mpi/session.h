// What happens once in an MPI program: the file opened before MPI_Init, the rank learned, clocks compared with ranks on
// other machines after MPI_Init and before MPI_Finalize.
#pragma once

#include "profiler/inject/sources/mpi/library.h"

namespace paceline::inject {

void before_init();
void after_init();
void before_finalize();
void after_finalize();

// MPI_Comm_spawn made this inter-communicator.
void note_spawned(Handle children);

// MPI 4's sessions have no MPI_COMM_WORLD, which communicators are described by: where nothing else begins MPI, the
// times of calls are recorded.
void after_session_init();

// At the end of a recording: says so where an MPI launcher started several ranks and no MPI was seen, or sessions
// alone.
void say_what_mpi_was_not_seen();

}  // namespace paceline::inject
