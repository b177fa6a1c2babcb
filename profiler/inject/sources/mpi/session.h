// SPDX-License-Identifier: Apache-2.0
// The steps that happen once in an MPI program: the file is opened before MPI_Init, the rank is read, and clocks are
// compared with ranks on other machines after MPI_Init and before MPI_Finalize.
#pragma once

#include "profiler/inject/sources/mpi/library.h"

namespace paceline::inject {

void before_init();
void after_init();
void before_finalize();
void after_finalize();

// Called when MPI_Comm_spawn has created this inter-communicator.
void note_spawned(Handle children);

// Called after MPI_Session_init of MPI 4. Sessions have no MPI_COMM_WORLD, which describes communicators. So only the
// times of calls are recorded unless MPI_Init is called too.
void after_session_init();

}  // namespace paceline::inject
