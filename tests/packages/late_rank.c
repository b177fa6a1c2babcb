// SPDX-License-Identifier: Apache-2.0
// Rank 1 comes 20 ms late to each of 10 barriers.
#include <mpi.h>
#include <time.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const struct timespec late = {0, 20000000};
  for (int step = 0; step < 10; ++step) {
    if (rank == 1) nanosleep(&late, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
