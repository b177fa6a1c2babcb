// SPDX-License-Identifier: Apache-2.0
// Counts a program's calls of MPI through the profiling interface of the MPI standard; it shares no code with Paceline.
// Preloaded, it writes "FUNCTION COUNT" lines into a new file of the directory MPI_COUNTS when a process that called
// MPI ends. Fortran's functions may call C's: each interface has counts of its own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
  const char* name;
  long calls;
} counts[64];
static int known;

static long* count_of(const char* name) {
  counts[known].name = name;
  return &counts[known++].calls;
}

#define COUNT(name)                           \
  static long* calls = NULL;                  \
  if (calls == NULL) calls = count_of(#name); \
  ++*calls

#define C(name, parameters, arguments) \
  int MPI_##name parameters {          \
    COUNT(MPI_##name);                 \
    return PMPI_##name arguments;      \
  }

#define WITH_COUNTS(_c, Count)                                                                                         \
  C(Allreduce##_c, (const void* from, void* to, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),             \
    (from, to, count, type, op, comm))                                                                                 \
  C(Reduce##_c, (const void* from, void* to, Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),      \
    (from, to, count, type, op, root, comm))                                                                           \
  C(Sendrecv##_c,                                                                                                      \
    (const void* from, Count count, MPI_Datatype type, int to, int tag, void* into, Count most, MPI_Datatype its_type, \
     int source, int its_tag, MPI_Comm comm, MPI_Status* status),                                                      \
    (from, count, type, to, tag, into, most, its_type, source, its_tag, comm, status))                                 \
  C(Isend##_c,                                                                                                         \
    (const void* from, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request),          \
    (from, count, type, to, tag, comm, request))                                                                       \
  C(Irecv##_c, (void* into, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request),   \
    (into, count, type, from, tag, comm, request))

C(Init, (int* argc, char*** argv), (argc, argv))
C(Init_thread, (int* argc, char*** argv, int level, int* got), (argc, argv, level, got))
C(Finalize, (void), ())
C(Comm_dup, (MPI_Comm comm, MPI_Comm* twin), (comm, twin))
C(Comm_free, (MPI_Comm * comm), (comm))
C(Barrier, (MPI_Comm comm), (comm))
C(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]), (count, requests, statuses))
WITH_COUNTS(, int)
#if MPI_VERSION >= 4
WITH_COUNTS(_c, MPI_Count)
#endif

// Fortran passes addresses only.
typedef void* P;
#define FORTRAN(symbol, parameters, arguments)                              \
  void symbol parameters {                                                  \
    static void(*next) parameters = NULL;                                   \
    if (next == NULL) next = (void(*) parameters)dlsym(RTLD_NEXT, #symbol); \
    COUNT(symbol);                                                          \
    next arguments;                                                         \
  }
#define EACH(name, parameters, arguments)           \
  FORTRAN(mpi_##name##_, parameters, arguments)     \
  FORTRAN(mpi_##name##_f08_, parameters, arguments) \
  FORTRAN(mpi_##name##_f08ts_, parameters, arguments)

EACH(init, (P a), (a))
EACH(finalize, (P a), (a))
EACH(comm_dup, (P a, P b, P c), (a, b, c))
EACH(comm_free, (P a, P b), (a, b))
EACH(allreduce, (P a, P b, P c, P d, P e, P f, P g), (a, b, c, d, e, f, g))
EACH(reduce, (P a, P b, P c, P d, P e, P f, P g, P h), (a, b, c, d, e, f, g, h))
EACH(barrier, (P a, P b), (a, b))
EACH(sendrecv, (P a, P b, P c, P d, P e, P f, P g, P h, P i, P j, P k, P l, P m),
     (a, b, c, d, e, f, g, h, i, j, k, l, m))
EACH(isend, (P a, P b, P c, P d, P e, P f, P g, P h), (a, b, c, d, e, f, g, h))
EACH(irecv, (P a, P b, P c, P d, P e, P f, P g, P h), (a, b, c, d, e, f, g, h))
EACH(waitall, (P a, P b, P c, P d), (a, b, c, d))

__attribute__((destructor)) static void write_counts(void) {
  const char* directory = getenv("MPI_COUNTS");
  char path[4096];
  if (known == 0 || directory == NULL) return;
  snprintf(path, sizeof path, "%s/XXXXXX", directory);
  FILE* file = fdopen(mkstemp(path), "w");
  for (int i = 0; i < known; ++i) fprintf(file, "%s %ld\n", counts[i].name, counts[i].calls);
  fclose(file);
}
