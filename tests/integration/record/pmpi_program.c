/* 202 MPI calls for the tests with another tool (pmpi_tool.c). */
#include <mpi.h>

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  for (int i = 0; i < 100; ++i) {
    int rank = 0;
    double one = 1, sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
