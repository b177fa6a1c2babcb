// What happens once in an MPI program: the file opened before MPI_Init, the rank learned, clocks compared with ranks on
// other machines after MPI_Init and before MPI_Finalize.
#pragma once

namespace paceline::inject {

void before_init();
void after_init();
void before_finalize();
void after_finalize();

// At the end of a recording: says so where an MPI launcher started several ranks and no MPI was seen.
void say_if_no_mpi_was_seen();

}  // namespace paceline::inject
