// SPDX-License-Identifier: Apache-2.0
// Alone, it starts another process with MPI_Comm_spawn and communicates with it. With two ranks, they connect through a
// port. It knows nothing of Paceline.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm parent, both, merged;
  MPI_Comm_get_parent(&parent);
  int one = 1, sum = 0, rank = 0, ranks = 0;
  char port[MPI_MAX_PORT_NAME];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks == 2 && rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &both);
    MPI_Close_port(port);
  } else if (ranks == 2) {
    MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &both);
  } else if (parent == MPI_COMM_NULL) {
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &both, MPI_ERRCODES_IGNORE);
  } else {
    both = parent;
  }
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, both);
  MPI_Intercomm_merge(both, parent != MPI_COMM_NULL || rank == 1, &merged);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged);
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&both);
  MPI_Finalize();
  printf("%s %d\n", parent == MPI_COMM_NULL ? "parent" : "child", sum);
  return 0;
}
