// SPDX-License-Identifier: Apache-2.0
// A profiling tool as users write it: it counts MPI calls in wrappers and adds the counts of all ranks at the end.
// TOOL is its name. It is preloaded, linked as a shared library, or part of the program.
#include <mpi.h>
#include <stdio.h>

static int allreduces, barriers, sendrecvs, fortran_allreduces;
static volatile int ended;  // is counted behind a call, so that the compiler does not make a jump of the call

// As mpiP has it: the wrapper is a thin shell around a function that nobody else can see. The tool also uses it for
// itself, before and after the program's calls, so that one place in the code has two purposes.
static __attribute__((noipa)) int count_allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                                                  MPI_Comm comm) {
  ++allreduces;
  const int result = PMPI_Allreduce(from, to, count, type, op, comm);
  ++ended;
  return result;
}

int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const int result = count_allreduce(from, to, count, type, op, comm);
  ++ended;
  return result;
}

int MPI_Comm_split(MPI_Comm comm, int colour, int key, MPI_Comm* part) {
  int one = 1, ranks = 0;
  count_allreduce(&one, &ranks, 1, MPI_INT, MPI_SUM, comm);
  const int result = PMPI_Comm_split(comm, colour, key, part);
  ++ended;
  return result;
}

// With a broadcast of its own, of which this tool has no wrapper.
int MPI_Barrier(MPI_Comm comm) {
  int level = 1;
  ++barriers;
  PMPI_Bcast(&level, 1, MPI_INT, 0, comm);
  const int result = PMPI_Barrier(comm);
  ++ended;
  return result;
}

// The compiler makes a jump of the call, so that this function is not on the stack.
int MPI_Sendrecv(const void* from, int count, MPI_Datatype type, int to, int tag, void* into, int most,
                 MPI_Datatype its_type, int source, int its_tag, MPI_Comm comm, MPI_Status* status) {
  ++sendrecvs;
  return PMPI_Sendrecv(from, count, type, to, tag, into, most, its_type, source, its_tag, comm, status);
}

// Of Fortran programs.
void pmpi_allreduce_(void*, void*, int*, int*, int*, int*, int*) __attribute__((weak));
void mpi_allreduce_(void* from, void* to, int* count, int* type, int* op, int* comm, int* error) {
  ++fortran_allreduces;
  pmpi_allreduce_(from, to, count, type, op, comm, error);
}

static __attribute__((noinline)) void add_all_ranks(void) {
  static int done = 0;
  const int mine[4] = {allreduces, barriers, sendrecvs, fortran_allreduces};
  int all[4], rank = 0;
  if (done++) return;  // Fortran's MPI_Finalize may call C's
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  count_allreduce(mine, all, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  PMPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) return;
  printf("%s: MPI_Allreduce %d MPI_Barrier %d MPI_Sendrecv %d mpi_allreduce_ %d\n", TOOL, all[0], all[1], all[2],
         all[3]);
  fflush(stdout);
}

int MPI_Finalize(void) {
  add_all_ranks();
  return PMPI_Finalize();
}

void pmpi_finalize_(int*) __attribute__((weak));
void mpi_finalize_(int* error) {
  add_all_ranks();
  pmpi_finalize_(error);
}
