// SPDX-License-Identifier: Apache-2.0
// usage: nvtx_ways WAY [PLUGIN …]: NVTX as programs use it. It knows nothing of Paceline.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../nccl_ranges.h"

typedef nvtxDomainHandle_t (*domain_function)(void);
typedef nvtxStringHandle_t (*string_function)(const char*);
typedef void (*push_function)(nvtxDomainHandle_t, nvtxStringHandle_t);
typedef void (*pop_function)(nvtxDomainHandle_t);

static void* function_of(void* library, const char* name) {
  void* found = library != NULL ? dlsym(library, name) : NULL;
  if (found == NULL) {
    fprintf(stderr, "%s: %s\n", name, dlerror());
    exit(9);
  }
  return found;
}

// Two libraries with NVTX, one after the other closed and opened again; handles of one are used in the other.
static int libraries(char** paths) {
  void* first = dlopen(paths[0], RTLD_NOW | RTLD_LOCAL);
  void* second = dlopen(paths[1], RTLD_NOW | RTLD_LOCAL);
  const nvtxDomainHandle_t domain = ((domain_function)function_of(first, "plugin_domain"))();
  if (((domain_function)function_of(second, "plugin_domain"))() != domain) return 2;
  char text[] = "crossing";
  const nvtxStringHandle_t name = ((string_function)function_of(first, "plugin_string"))(text);
  memset(text, 'x', sizeof text - 1);
  ((push_function)function_of(second, "plugin_push"))(domain, name);
  dlclose(first);
  ((push_function)function_of(second, "plugin_push"))(domain, name);
  for (int i = 0; i < 20; ++i) {
    first = dlopen(paths[0], RTLD_NOW | RTLD_LOCAL);
    ((push_function)function_of(first, "plugin_push"))(domain, name);
    ((pop_function)function_of(first, "plugin_pop"))(domain);
    dlclose(first);
  }
  nvtxDomainRangePop(domain);
  ((pop_function)function_of(second, "plugin_pop"))(domain);
  return 0;
}

static nvtxRangeId_t handed_over;

static void* short_lived(void* number) {
  nvtxRangePushA("short-lived");
  if (*(int*)number % 2 == 0) nvtxRangePop();  // others end with their range open
  if (*(int*)number == 0) handed_over = nvtxRangeStartA("handed over");
  nvtxMarkA("thread");
  return NULL;
}
static void* ends_it(void* unused) {
  nvtxRangeEnd(handed_over);
  return unused;
}

static int threads(void) {
  for (int number = 0; number < 100; ++number) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, short_lived, &number) != 0) return 3;
    pthread_join(thread, NULL);
  }
  pthread_t thread;
  if (pthread_create(&thread, NULL, ends_it, NULL) != 0) return 3;
  pthread_join(thread, NULL);
  return 0;
}

static void many_calls(void) {
  for (int i = 0; i < 10000; ++i) {
    nvtxRangePushA("late");
    nvtxNameOsThreadA(1, "late");
    nvtxDomainRegisterStringA(nvtxDomainCreateA("late domain"), "late string");
    nvtxRangePop();
  }
}
static void* never_stops(void* unused) {
  for (;;) {
    nvtxRangePushA("until the end");
    nvtxRangePop();
  }
  return unused;
}
__attribute__((destructor)) static void after_main(void) {
  if (handed_over == 77) many_calls();
}

// Calls from exit handlers and destructors while another thread goes on.
static int late(void) {
  handed_over = 77;
  atexit(many_calls);
  pthread_t thread;
  if (pthread_create(&thread, NULL, never_stops, NULL) != 0) return 3;
  usleep(1000);
  nvtxMarkA("end of main");
  return 0;
}

static int nccl(void) {
  const uint64_t communicator = 0xfeedfacecafebeef;
  if (!nccl_ranges_begin()) return 4;
  nccl_communicator_made(communicator, 8);
  for (int i = 0; i < 50; ++i) {
    const struct nccl_reduce_payload sum = {communicator, 4096u << (i % 10), i % 3};
    nccl_push("ncclAllReduce", nccl_all_reduce, &sum, sizeof sum);
    nccl_pop();
  }
  const struct nccl_peer_payload to = {communicator, 1024, 3};
  nccl_push("ncclSend", nccl_send, &to, sizeof to);
  nccl_pop();
  return 0;
}

int main(int count, char** arguments) {
  const char* way = count > 1 ? arguments[1] : "";
  if (strcmp(way, "libraries") == 0) return libraries(arguments + 2);
  if (strcmp(way, "threads") == 0) return threads();
  if (strcmp(way, "late") == 0) return late();
  if (strcmp(way, "nccl") == 0) return nccl();
  return 8;
}
