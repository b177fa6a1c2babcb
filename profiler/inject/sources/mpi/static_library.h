// SPDX-License-Identifier: Apache-2.0
// MPI libraries that are linked into the program itself, whose functions nobody can replace.
#pragma once

namespace paceline::inject {

// True if the program's file has an MPI library in it and a table of its symbols (it is not stripped). Cost: a read of
// the file's table of names, under a millisecond for 10 MB.
bool has_static_mpi();

// One line if so, once in a job.
void report_static_mpi();

}  // namespace paceline::inject
