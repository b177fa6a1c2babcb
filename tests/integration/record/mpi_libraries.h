// SPDX-License-Identifier: Apache-2.0
// The MPI libraries that the recorder is tested with.
#pragma once

namespace paceline::test {

struct MpiLibraryOfTests {
  const char* name;
  const char* programs;  // the folder of its programs; "" if it is not installed
  const char* launcher;
};
inline constexpr MpiLibraryOfTests mpi_libraries[] = {{"OpenMpi", OPEN_MPI_PROGRAMS, MPIRUN " --bind-to none "},
                                                      {"Mpich", MPICH_PROGRAMS, MPICH_MPIRUN " "}};

}  // namespace paceline::test
