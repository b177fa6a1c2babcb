// SPDX-License-Identifier: Apache-2.0
/* usage: peers nvtx|lttng|mpi: the time of one range (a push and a pop, or two tracepoints) or of one MPI_Allreduce of
 * 8 bytes on one rank. Prints the median of bursts, in ns of the thread's CPU time. Between bursts it sleeps, so that
 * the recorder's own thread catches up, as it does in programs that have other work. */
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef PEERS_LTTNG
#include "lttng_events.h"
#endif

enum { bursts = 41, ranges_of_burst = 50000, calls_of_burst = 20000 };

static double cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void burst_of(const char* mode, int count) {
  if (strcmp(mode, "nvtx") == 0) {
    for (int i = 0; i < count; ++i) {
      nvtxRangePushA("range");
      nvtxRangePop();
    }
  } else if (strcmp(mode, "mpi") == 0) {
    double value = 1, sum;
    for (int i = 0; i < count; ++i) MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  } else {
#ifdef PEERS_LTTNG
    for (int i = 0; i < count; ++i) {
      lttng_ust_tracepoint(paceline_peers, begin, "range");
      lttng_ust_tracepoint(paceline_peers, end);
    }
#endif
  }
}

int main(int count, char** arguments) {
  const char* mode = count > 1 ? arguments[1] : "";
  const int is_mpi = strcmp(mode, "mpi") == 0, size = is_mpi ? calls_of_burst : ranges_of_burst;
  if (is_mpi) MPI_Init(NULL, NULL);
  double ns[bursts];
  burst_of(mode, size);  // the first burst fills caches
  for (int i = 0; i < bursts; ++i) {
    usleep(40000);
    const double began = cpu_ns();
    burst_of(mode, size);
    ns[i] = (cpu_ns() - began) / size;
  }
  qsort(ns, bursts, sizeof *ns, by_size);
  printf("%.3f\n", ns[bursts / 2]);
  if (is_mpi) MPI_Finalize();
  return 0;
}
