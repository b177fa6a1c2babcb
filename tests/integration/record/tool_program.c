// SPDX-License-Identifier: Apache-2.0
// Calls MPI a known number of times, with and without functions that tool.c wraps, and prints the numbers.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank = 0, from = 1, to = 0;
  MPI_Comm half;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &half);
  for (int step = 0; step < 50; ++step) {
    MPI_Allreduce(&from, &to, 1, MPI_INT, MPI_SUM, step % 2 == 0 ? half : MPI_COMM_WORLD);
    MPI_Sendrecv(&from, 1, MPI_INT, rank ^ 1, 0, &to, 1, MPI_INT, rank ^ 1, 0, half, MPI_STATUS_IGNORE);
    MPI_Bcast(&from, 1, MPI_INT, 0, half);
    if (step % 5 == 0) MPI_Barrier(half);
  }
  MPI_Comm_free(&half);
  MPI_Finalize();
  return 0;
}
