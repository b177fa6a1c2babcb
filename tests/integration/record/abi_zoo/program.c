// SPDX-License-Identifier: Apache-2.0
// usage: program [STATUS]
// Ten steps with an NVTX range and MPI calls each, as C and as C++; it ends with STATUS. program.F90 and program.py
// make the same calls. -DPLUGIN: a shared library that host.c loads. -DBY_DLSYM: MPI is loaded and called through
// dlsym.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __cplusplus
#include <nvtx3/nvtx3.hpp>
#else
#include <nvtx3/nvToolsExt.h>
#endif

#ifdef BY_DLSYM  // as languages do that call C libraries at run time
static void* library;
#define CALL(name) ((__typeof__(&name))dlsym(library, #name))
#ifdef OPEN_MPI
#define OBJECT(name, value) ((__typeof__(value))dlsym(library, "ompi_" name))
#else
#define OBJECT(name, value) value
#endif
#define WORLD OBJECT("mpi_comm_world", MPI_COMM_WORLD)
#define INT OBJECT("mpi_int", MPI_INT)
#define SUM OBJECT("mpi_op_sum", MPI_SUM)
#else
#define CALL(name) name
#define WORLD MPI_COMM_WORLD
#define INT MPI_INT
#define SUM MPI_SUM
#endif

static void step(int rank, int ranks, MPI_Comm twin) {
#ifdef __cplusplus
  const nvtx3::scoped_range range{"step"};
#else
  nvtxRangePushA("step");
#endif
  int mine = rank, sum = 0, other = 0;
  MPI_Request requests[2];
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  CALL(MPI_Allreduce)(&mine, &sum, 1, INT, SUM, WORLD);
  CALL(MPI_Sendrecv)(&mine, 1, INT, next, 1, &other, 1, INT, previous, 1, WORLD, MPI_STATUS_IGNORE);
  CALL(MPI_Irecv)(&other, 1, INT, previous, 2, twin, &requests[0]);
  CALL(MPI_Isend)(&mine, 1, INT, next, 2, twin, &requests[1]);
  CALL(MPI_Waitall)(2, requests, MPI_STATUSES_IGNORE);
  if (sum != ranks * (ranks - 1) / 2 || other != previous) exit(90);
#ifndef __cplusplus
  nvtxRangePop();
#endif
}

#ifdef PLUGIN
int run(int argc, char** argv) {
#else
int main(int argc, char** argv) {
#endif
#ifdef BY_DLSYM
  library = dlopen(BY_DLSYM, RTLD_NOW);
  if (library == NULL) return 91;
#endif
  int rank = 0, ranks = 0, total = 0;
  MPI_Comm twin;
  CALL(MPI_Init)(&argc, &argv);
  CALL(MPI_Comm_rank)(WORLD, &rank);
  CALL(MPI_Comm_size)(WORLD, &ranks);
  CALL(MPI_Comm_dup)(WORLD, &twin);
  for (int i = 0; i < 10; ++i) step(rank, ranks, twin);
  CALL(MPI_Comm_free)(&twin);
  CALL(MPI_Barrier)(WORLD);
  CALL(MPI_Reduce)(&rank, &total, 1, INT, SUM, 0, WORLD);
  if (rank == 0) printf("%d ranks, sum %d\n", ranks, total);
  CALL(MPI_Finalize)();
  return argc > 1 ? atoi(argv[1]) : 0;
}
