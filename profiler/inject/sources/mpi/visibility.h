// SPDX-License-Identifier: Apache-2.0
// Which of the recorder's MPI functions other libraries can find.
#pragma once

namespace paceline::inject {

// Makes the program find those of the recorder's MPI functions that it would find without the recorder, and no others.
// Called when the library is loaded.
void match_mpi_libraries();

}  // namespace paceline::inject
