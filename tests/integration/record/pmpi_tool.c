/* Another tool that counts MPI calls by the profiling interface (PMPI), as mpiP and Score-P do. It is preloaded, or a
 * library of the program, or a part of the program. It prints its number at the end. */
#include <mpi.h>
#include <stdio.h>

static int calls;

int MPI_Init(int* count, char*** arguments) {
  ++calls;
  return PMPI_Init(count, arguments);
}

int MPI_Comm_rank(MPI_Comm communicator, int* rank) {
  ++calls;
  return PMPI_Comm_rank(communicator, rank);
}

int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm communicator) {
  ++calls;
  return PMPI_Allreduce(from, to, count, type, operation, communicator);
}

int MPI_Finalize(void) {
  ++calls;
  const int result = PMPI_Finalize();
  printf("tool: %d\n", calls);
  fflush(stdout);
  return result;
}
