// SPDX-License-Identifier: Apache-2.0
/* A program of two threads with NVTX ranges, which is built with a sanitizer. It has no fault that one could find. */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void ranges(void) {
  for (int i = 0; i < 1000; ++i) {
    char* text = malloc(8);
    snprintf(text, 8, "r%d", i % 10);
    nvtxRangePushA(text);
    nvtxRangePop();
    free(text);
  }
}

static void* in_thread(void* nothing) {
  ranges();
  return nothing;
}

int main(void) {
  nvtxMarkA("start");
  pthread_t thread;
  pthread_create(&thread, NULL, in_thread, NULL);
  ranges();
  pthread_join(thread, NULL);
  puts("sanitized");
  return 4;
}
