// SPDX-License-Identifier: Apache-2.0
// usage: cuda_host [WAYS]: stands for a program that uses CUDA: loads $CUDA_INJECTION64_PATH and calls it, as the
// driver does when it is initialised; then, with the stand-in of CUPTI loaded, lets it tell of 3 × 1000 launches.
//   WAYS "kill" ends by SIGKILL after half a second, "kill-busy" and (in larger number) "kill-queued" in the midst of
//   launches, each followed by a mark, "exit-at-once" calls _exit right after the launches, "many" launches 60 times as
//   many, "graphs" launches graphs instead, "named" names its context and streams before, "idle" says at the end what
//   the recorder's threads do while nothing happens, "profiles" uses CUPTI itself between two rounds, by the library
//   CUPTI_USER (cupti_user.c)
#include <dlfcn.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../record/idle_threads.h"

static int (*run)(unsigned, unsigned, unsigned);
static void launch(unsigned launches) { run(900001, launches, (unsigned)syscall(SYS_gettid)); }
static void rest(void) { usleep(400000); }

int main(int count, char** arguments) {
  const char* way = count > 1 ? arguments[1] : "";
  const char* path = getenv("CUDA_INJECTION64_PATH");
  if (path == NULL) return puts("CUDA_INJECTION64_PATH is not set"), 1;
  void* library = dlopen(path, RTLD_NOW);
  if (library == NULL) return puts(dlerror()), 1;
  int (*initialize)(void) = (int (*)(void))dlsym(library, "InitializeInjection");
  if (initialize == NULL || initialize() != 1) return puts("InitializeInjection"), 1;
  void* cupti = dlopen("libcupti.so.12", RTLD_NOW | RTLD_NOLOAD);
  if (cupti == NULL) cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  run = cupti != NULL ? (int (*)(unsigned, unsigned, unsigned))dlsym(cupti, "stand_in_run") : NULL;
  if (run != NULL && strcmp(way, "named") == 0) {
    ((void (*)(void))dlsym(cupti, "stand_in_makes_streams"))();
    nvtxNameCuContextA((CUcontext)0x1001, "main");
    nvtxNameCudaStreamA((cudaStream_t)0x2007, "compute");
    nvtxNameCuStreamA((CUstream)0x200d, "copies");
  }
  if (run != NULL && strcmp(way, "profiles") == 0) {
    void* user = dlopen(getenv("CUPTI_USER"), RTLD_NOW | RTLD_LOCAL);
    if (user == NULL) return puts(dlerror()), 1;
    launch(1000);
    ((void (*)(void (*)(unsigned), unsigned, void (*)(void)))dlsym(user, "profile_twice"))(launch, 100, rest);
  }
  if (run != NULL && strcmp(way, "kill-busy") == 0) {
    for (unsigned launch = 0; launch < 500; ++launch) {
      run(1 + launch * 100, 1, (unsigned)syscall(SYS_gettid));
      nvtxMarkA("launched");
      usleep(1000);
    }
    kill(getpid(), SIGKILL);
  }
  if (run != NULL && strcmp(way, "kill-queued") == 0) {
    for (unsigned launch = 0; launch < 6000; ++launch) {
      run(1 + launch * 10, 1, (unsigned)syscall(SYS_gettid));
      nvtxMarkA("launched");
      if (launch % 10 == 9) usleep(1000);
    }
    kill(getpid(), SIGKILL);
  }
  if (run != NULL && strcmp(way, "graphs") == 0) {
    ((void (*)(unsigned))dlsym(cupti, "stand_in_graphs"))(1);
  } else if (run != NULL) {
    const unsigned thread = (unsigned)syscall(SYS_gettid);
    const unsigned launches = strcmp(way, "many") == 0 ? 60000 : 1000;
    for (unsigned round = 0; round < 3; ++round) {
      run(1 + round * 100000, launches, thread);
      if (strcmp(way, "exit-at-once") != 0) usleep(20000);
    }
  }
  if (strcmp(way, "exit-at-once") == 0) _exit(0);
  if (strcmp(way, "idle") == 0) print_idle_threads();
  if (strcmp(way, "kill") == 0) {
    usleep(500000);
    kill(getpid(), SIGKILL);
  }
  puts("done");
  return 0;
}
