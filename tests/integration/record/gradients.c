// SPDX-License-Identifier: Apache-2.0
// A data-parallel training loop's communication: 25 gradients of different sizes, a metric and a barrier in each step.
#include <mpi.h>
#include <time.h>

enum { steps = 200, layers = 25 };

static float gradient[4 * layers];

static void compute(long nanoseconds) {
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < nanoseconds);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  for (int step = 0; step < steps; ++step) {
    MPI_Request requests[layers];
    for (int layer = 0; layer < layers; ++layer) {
      compute(2000 + 997L * (layer * step % 7));
      MPI_Iallreduce(MPI_IN_PLACE, gradient, 1 + 4 * layer, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[layer]);
    }
    for (int layer = 0; layer < layers; ++layer) MPI_Wait(&requests[layer], MPI_STATUS_IGNORE);
    MPI_Allreduce(MPI_IN_PLACE, gradient, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Pcontrol(0);  // this one is not recorded
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Pcontrol(1);
  MPI_Finalize();
  return 0;
}
