// SPDX-License-Identifier: Apache-2.0
// A library that calls MPI 4's functions with large counts if it finds them.
#include <stddef.h>

extern int MPI_Bcast_c() __attribute__((weak));

int broadcast(void* buffer, ptrdiff_t count, void* type, int root, void* communicator) {
  return MPI_Bcast_c != 0 ? MPI_Bcast_c(buffer, count, type, root, communicator) : -1;
}
