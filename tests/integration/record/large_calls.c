// SPDX-License-Identifier: Apache-2.0
// Broadcasts through a library that is bound before the program's preloaded libraries.
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>

int broadcast(void* buffer, ptrdiff_t count, void* type, int root, void* communicator);

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int value[100] = {42};
  // -1 if the library found no such function, which is right too.
  const int result = broadcast(value, 100, MPI_INT, 0, MPI_COMM_WORLD);
  printf("%s\n", result == MPI_SUCCESS || result == -1 ? "done" : "failed");
  MPI_Finalize();
  return 0;
}
