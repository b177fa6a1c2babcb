// SPDX-License-Identifier: Apache-2.0
// A program whose marks contain the true time: clock_marks SECONDS [FILE]. It ends earlier when FILE exists. The
// payload of each mark "true" is the machine's one counter, read right before; that of the mark "took" after it is how
// many of its ticks the first one took. It knows nothing of Paceline, nor of the clock that a rank may be given to
// pretend.
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t counter(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

static void mark(const char* name, uint64_t payload) {
  nvtxEventAttributes_t attributes = {0};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = payload;
  nvtxMarkEx(&attributes);
}

static void marks(int count) {
  for (int i = 0; i < count; ++i) {
    const uint64_t before = counter();
    mark("true", before);
    mark("took", counter() - before);
    if (i % 4 == 3) usleep(500);  // the next one is slow
  }
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 0.3;
  const char* end = argc > 2 ? argv[2] : NULL;
  marks(20);
  MPI_Init(&argc, &argv);
  const double start = MPI_Wtime();
  for (int more = 1; more;) {
    marks(12);
    const int left = MPI_Wtime() - start < seconds && (end == NULL || access(end, F_OK) != 0);
    MPI_Allreduce(&left, &more, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  marks(20);
  return 0;
}
