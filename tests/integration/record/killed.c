// SPDX-License-Identifier: Apache-2.0
// A program that logs its ranges until it is killed or 150 ms have passed: killed FILE. Two threads end ranges
// one after another, numbered by their payloads, and note in FILE, which outlives them, when each one ended
// (CLOCK_MONOTONIC, ns). It knows nothing of Paceline.
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/integration/record/killed.h"

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct killed_log* logs;
static int64_t end_of_all;

static void* work(void* argument) {
  const int thread = (int)(intptr_t)argument;
  struct killed_log* log = &logs[thread];
  nvtxEventAttributes_t attributes = {0};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = thread == 0 ? "thread 0" : "thread 1";
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  const struct timespec pause = {0, 10000};
  for (uint64_t range = 0; range < KILLED_RANGES && now_ns() < end_of_all; ++range) {
    attributes.payload.ullValue = range;
    nvtxRangePushEx(&attributes);
    nvtxRangePop();
    log->end_ns[range] = now_ns();
    atomic_store_explicit((_Atomic uint64_t*)&log->count, range + 1, memory_order_release);
    if (range % 8 == 7) nanosleep(&pause, NULL);
  }
  return NULL;
}

int main(int argc, char** argv) {
  const int file = argc > 1 ? open(argv[1], O_RDWR) : -1;
  if (file < 0) return 2;
  logs = mmap(NULL, 2 * sizeof *logs, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (logs == MAP_FAILED) return 1;
  end_of_all = now_ns() + 150000000;
  nvtxMarkA("begin");  // opens the file: what another thread emits meanwhile is dropped and counted
  pthread_t other;
  if (pthread_create(&other, NULL, work, (void*)1) != 0) return 1;
  work((void*)0);
  pthread_join(other, NULL);
  return 0;
}
