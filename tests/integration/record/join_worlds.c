// One program starts another by MPI_Comm_spawn and speaks with it. It knows nothing of Paceline.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm parent, both, merged;
  MPI_Comm_get_parent(&parent);
  int one = 1, sum = 0;
  if (parent == MPI_COMM_NULL) {
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &both, MPI_ERRCODES_IGNORE);
  } else {
    both = parent;
  }
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, both);
  MPI_Intercomm_merge(both, parent != MPI_COMM_NULL, &merged);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged);
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&both);
  MPI_Finalize();
  printf("%s %d\n", parent == MPI_COMM_NULL ? "parent" : "child", sum);
  return 0;
}
