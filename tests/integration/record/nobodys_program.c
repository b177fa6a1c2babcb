// SPDX-License-Identifier: Apache-2.0
// Three steps with an unknown library (nobodys_mpi.c), which is linked statically or dynamically.
#include <nvtx3/nvToolsExt.h>

int MPI_Init(int*, char***);
int MPI_Finalize(void);
int MPI_Allreduce(const void*, void*, int, int, int, int);

int main(int argc, char** argv) {
  char from = 1, to = 0;
  MPI_Init(&argc, &argv);
  for (int step = 0; step < 3; ++step) {
    nvtxRangePushA("step");
    MPI_Allreduce(&from, &to, 1, -1, -1, -1);
    nvtxRangePop();
  }
  MPI_Finalize();
  return to == 1 ? 0 : 1;
}
