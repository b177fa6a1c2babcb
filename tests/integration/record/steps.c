// SPDX-License-Identifier: Apache-2.0
// usage: steps STEPS MS [late RANK MS] [hang RANK STEP] [name TEXT] [ranges N]
// A data-parallel program of steps of about MS milliseconds: forward, backward, an allreduce, optimizer. With `late`,
// one rank comes late to each allreduce. With `hang`, one rank never enters the allreduce of that step; it stays in a
// range called TEXT. With `ranges`, each step has N short ranges more. It knows nothing of Paceline.
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
  const int steps = argc > 1 ? atoi(argv[1]) : 100;
  const double ms = argc > 2 ? atof(argv[2]) : 10;
  int late_rank = -1, hanging_rank = -1, hanging_step = -1;
  double late_ms = 0;
  const char* name = "endless";
  int ranges = 0;
  for (int i = 3; i < argc; ++i) {
    if (strcmp(argv[i], "late") == 0 && i + 2 < argc)
      late_rank = atoi(argv[i + 1]), late_ms = atof(argv[i + 2]), i += 2;
    if (strcmp(argv[i], "hang") == 0 && i + 2 < argc) {
      hanging_rank = atoi(argv[i + 1]), hanging_step = atoi(argv[i + 2]), i += 2;
    }
    if (strcmp(argv[i], "name") == 0 && i + 1 < argc) name = argv[++i];
    if (strcmp(argv[i], "ranges") == 0 && i + 1 < argc) ranges = atoi(argv[++i]);
  }
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double gradient[256] = {1}, sum[256];
  for (int step = 0; step < steps; ++step) {
    nvtxRangePushA("iteration");
    work("forward", 0.3 * ms);
    for (int i = 0; i < ranges; ++i) {
      nvtxRangePushA("layer");
      nvtxRangePop();
    }
    work("backward", 0.5 * ms);
    if (rank == late_rank) work("backward of the rest", late_ms);
    while (rank == hanging_rank && step == hanging_step) work(name, 1e3);
    MPI_Allreduce(gradient, sum, 256, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    work("optimizer", 0.1 * ms);
    nvtxRangePop();
  }
  MPI_Finalize();
  return 0;
}
