// SPDX-License-Identifier: Apache-2.0
// Prints which MPI functions this program finds with weak references and with dlsym. It calls none of them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

// It does not come to an end with this list.
// clang-format off
#define FUNCTIONS(X)                                                                                                  \
  X(MPI_Init)                                                                                                         \
  X(MPI_Bcast)                                                                                                        \
  X(PMPI_Bcast)                                                                                                       \
  X(PMPI_Bcast_c)                                                                                                     \
  X(PMPI_Init)                                                                                                        \
  X(pmpi_send_)                                                                                                       \
  X(MPI_Bcast_c) X(MPI_Isendrecv) X(MPI_Alltoallv_c) X(MPI_Allgather_init) X(MPIX_Allgather_init) X(MPI_Session_init) \
      X(MPI_Psend_init) X(mpi_send_) X(mpi_send_f08_) X(MPI_Pcontrol)
// clang-format on

#define DECLARE(name) extern int name() __attribute__((weak));
FUNCTIONS(DECLARE)

int main(void) {
#define PRINT(name) printf(#name " %d %d\n", name != 0, dlsym(RTLD_DEFAULT, #name) != 0);
  FUNCTIONS(PRINT)
  return 0;
}
