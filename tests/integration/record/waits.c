// SPDX-License-Identifier: Apache-2.0
// usage: waits ibarrier | deadlock | ring | tag | slow SECONDS | sleeps
// Programs that hang, and one that is only slow; the last rank differs from the others. It knows nothing of Paceline.
//   ibarrier  the last rank never enters MPI_Ibarrier, which the others poll with MPI_Test
//   deadlock  two ranks receive from each other before they send
//   ring      each rank receives from its left neighbour before it sends
//   tag       rank 0 waits for tag 7, and rank 1 sent tag 9
//   slow      the last rank computes in short ranges for that time, then enters the allreduce
//   sleeps    all ranks sleep after an allreduce until they are killed
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void work(const char* name, double ms) {
  nvtxRangePushA(name);
  const struct timespec pause = {(time_t)(ms / 1e3), (long)((ms - 1e3 * (time_t)(ms / 1e3)) * 1e6)};
  nanosleep(&pause, NULL);
  nvtxRangePop();
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const double seconds = argc > 2 ? atof(argv[2]) : 3;
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1, value = 1, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int last = rank == ranks - 1;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (strcmp(mode, "ibarrier") == 0) {
    if (last) {
      for (;;) work("elsewhere", 3.6e6);
    }
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int done = 0; !done;) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      const struct timespec pause = {0, 1000000};
      nanosleep(&pause, NULL);
    }
  } else if (strcmp(mode, "deadlock") == 0) {
    MPI_Recv(&value, 1, MPI_INT, 1 - rank, rank == 0 ? 7 : 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (strcmp(mode, "ring") == 0) {
    MPI_Recv(&value, 1, MPI_INT, (rank + ranks - 1) % ranks, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (strcmp(mode, "tag") == 0) {
    if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (strcmp(mode, "slow") == 0) {
    for (double left = last ? seconds : 0; left > 0; left -= 0.1) work("item", 100);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  } else if (strcmp(mode, "sleeps") == 0) {
    for (;;) work("sleep", 100);
  }
  MPI_Finalize();
  return 0;
}
