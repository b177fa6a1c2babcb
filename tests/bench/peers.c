// What one range or one MPI call costs the thread that makes it. peers.py runs it with and without a profiler.
//
//   peers ascii | registered | mpi        NVTX ranges with a text or a registered string; MPI_Allreduce of 8 bytes
//   peers lttng | mpi-lttng               the same as a pair of LTTng's tracepoints, and around MPI_Allreduce
//
// Prints the median ns of 20 bursts, by the thread's own CPU time, and the number of pairs. Pauses between the bursts
// let the profiler's own threads catch up.
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef HAVE_LTTNG
#define TRACEPOINT_DEFINE
#define TRACEPOINT_PROBE_DYNAMIC_LINKAGE_NOT_USED
#include "peers_tracepoints.h"
#define BEGIN_PAIR(name) tracepoint(paceline_peers, push, name)
#define END_PAIR() tracepoint(paceline_peers, pop)
#else
#define BEGIN_PAIR(name) (void)0
#define END_PAIR() (void)0
#endif

enum { bursts = 20, pairs = 50000 };

static double cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int rising(const void* a, const void* b) {
  const double left = *(const double*)a, right = *(const double*)b;
  return (left > right) - (left < right);
}

static void allreduce(void) {
  static long from = 1, to;
  MPI_Allreduce(&from, &to, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
}

static void burst(const char* kind, const nvtxEventAttributes_t* attributes) {
  if (strcmp(kind, "ascii") == 0) {
    for (int i = 0; i < pairs; ++i) nvtxRangePushA("layer1.0.conv1"), nvtxRangePop();
  } else if (strcmp(kind, "registered") == 0) {
    for (int i = 0; i < pairs; ++i) nvtxRangePushEx(attributes), nvtxRangePop();
  } else if (strcmp(kind, "mpi") == 0) {
    for (int i = 0; i < pairs; ++i) allreduce();
  } else if (strcmp(kind, "lttng") == 0) {
    for (int i = 0; i < pairs; ++i) {
      BEGIN_PAIR("layer1.0.conv1");
      END_PAIR();
    }
  } else {
    for (int i = 0; i < pairs; ++i) {
      BEGIN_PAIR("MPI_Allreduce");
      allreduce();
      END_PAIR();
    }
  }
}

int main(int argc, char** argv) {
  const char* kind = argc > 1 ? argv[1] : "";
  if (strstr("ascii registered mpi lttng mpi-lttng", kind) == NULL || *kind == '\0') return 2;
#ifndef HAVE_LTTNG
  if (strstr(kind, "lttng") != NULL) return 77;
#endif
  const int mpi = strncmp(kind, "mpi", 3) == 0;
  if (mpi) MPI_Init(&argc, &argv);
  nvtxEventAttributes_t attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  if (!mpi) attributes.message.registered = nvtxDomainRegisterStringA(NULL, "layer1.0.conv1");
  double each[bursts];
  for (int at = -1; at < bursts; ++at) {  // the first one only warms up
    const struct timespec pause = {0, 100 * 1000 * 1000};
    nanosleep(&pause, NULL);
    const double begin = cpu_ns();
    burst(kind, &attributes);
    if (at >= 0) each[at] = (cpu_ns() - begin) / pairs;
  }
  qsort(each, bursts, sizeof *each, rising);
  printf("%.2f %d\n", (each[bursts / 2 - 1] + each[bursts / 2]) / 2, (bursts + 1) * pairs);
  if (mpi) MPI_Finalize();
  return 0;
}
