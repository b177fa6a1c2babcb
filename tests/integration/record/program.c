// SPDX-License-Identifier: Apache-2.0
// A data-parallel program of 30 lines. It knows nothing of Paceline.
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm reversed;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  double gradient[256] = {1}, sum[256];
  for (int iteration = 0; iteration < 100; ++iteration) {
    nvtxRangePushA("iteration");
    nvtxRangePushA(iteration % 2 ? "odd" : "even");
    MPI_Allreduce(gradient, sum, 256, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    nvtxRangePop();
    MPI_Bcast(sum, 64, MPI_INT, 0, reversed);
    nvtxRangePop();
  }
  MPI_Request request;
  if (rank == 0 && ranks > 1) MPI_Send(gradient, 10, MPI_DOUBLE, 1, 77, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(gradient, 10, MPI_DOUBLE, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Iallreduce(MPI_IN_PLACE, sum, 8, MPI_FLOAT, MPI_SUM, reversed, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&reversed);
  MPI_Finalize();
  printf("rank %d of %d done\n", rank, ranks);
  return 0;
}
