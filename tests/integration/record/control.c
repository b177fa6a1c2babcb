// SPDX-License-Identifier: Apache-2.0
// The program for tests of recording options: control MODE [ARGUMENT]. It knows nothing of Paceline.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "idle_threads.h"

int cudaProfilerStart(void);  // of the stand-in for libcudart
int cudaProfilerStop(void);
int stand_in_calls(void);

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void numbered_mark(uint64_t number) {
  nvtxEventAttributes_t mark = {0};
  mark.version = NVTX_VERSION;
  mark.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  mark.messageType = NVTX_MESSAGE_TYPE_ASCII;
  mark.message.ascii = "number";
  mark.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  mark.payload.ullValue = number;
  nvtxMarkEx(&mark);
}

// Emits marks numbered from `number` on, at most 50,000 per second, for some time or until a file exists.
static void count_for(double seconds, uint64_t number, const char* until) {
  const double end = now() + seconds;
  while (now() < end && (until == NULL || access(until, F_OK) != 0)) {
    for (int i = 0; i < 10; ++i) numbered_mark(number++);
    usleep(150);
  }
}

// The same up to a number. The last 500 come at once, because a sleep may be long on a busy machine.
static void count_up_to(uint64_t count) {
  for (uint64_t number = 0; number < count; ++number) {
    numbered_mark(number);
    if (number % 10 == 9 && number + 500 < count) usleep(150);
  }
}

// The slow one takes ten times as long as the longest before it, and 60 ms at least.
static void iterations(const char* name, int count, int slow) {
  double longest = 0.006;
  nvtxRangePushA("epoch");
  for (int i = 0; i < count; ++i) {
    if (i == count / 2) {
      nvtxRangePop();
      nvtxRangePushA("epoch");
    }
    const double begin = now();
    nvtxRangePushA(name);
    nvtxRangePushA("work");
    usleep(i == slow ? (useconds_t)(1e7 * longest) : 1000);
    nvtxRangePop();
    nvtxRangePop();
    if (now() - begin > longest) longest = now() - begin;
    nvtxMarkA("between");
  }
  nvtxRangePop();
}

static void ranges(const char* name, int count) {
  for (int i = 0; i < count; ++i) {
    nvtxRangePushA(name);
    nvtxRangePop();
  }
}

// Twenty iterations with one forward range each, which contains many ranges.
static void overload(int count) {
  for (int i = 0; i < 20; ++i) {
    nvtxRangePushA("iteration");
    nvtxRangePushA("forward");
    ranges("inner", count);
    nvtxRangePop();
    nvtxRangePop();
  }
}

// Two workers that a signal ends, as PyTorch's DataLoader ends workers that do not answer.
static void end_workers(void) {
  ranges("parent", 1);
  for (int worker = 0; worker < 2; ++worker) {
    int ready[2];
    char byte = 0;
    if (pipe(ready) != 0) return;
    const pid_t child = fork();
    if (child == 0) {
      ranges("worker", 5000);
      if (write(ready[1], &byte, 1) == 1) pause();
      _exit(1);
    }
    if (read(ready[0], &byte, 1) != 1) return;
    kill(child, SIGTERM);
    waitpid(child, NULL, 0);
  }
}

// An iteration around the ranges of a library, for each of `count` copies in namespaces of their own.
static int use_namespaces(const char* path, int count) {
  int failed = 0;
  for (int i = 0; i < count; ++i) {
    nvtxRangePushA("iteration");
    void* library = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    if (library == NULL) fprintf(stderr, "namespace %d: %s\n", i, dlerror());
    int (*make_ranges)(const char*) = NULL;
    if (library != NULL) *(void**)&make_ranges = dlsym(library, "make_ranges_in_threads");
    if (make_ranges == NULL || make_ranges("inside") != 0) ++failed;
    nvtxRangePop();
  }
  return failed;
}

// The handler of a timer emits ranges while the main thread does, also where that one is in the middle of a range or
// waits for the recorder. Prints the number of the handler's ranges.
static volatile sig_atomic_t handled = 0;
static void on_timer(int number) {
  (void)number;
  ranges("handler", 5);
  handled += 5;
}
static void interrupted(int count) {
  struct itimerval timer = {{0, 300}, {0, 300}};
  nvtxMarkA("start");
  signal(SIGALRM, on_timer);
  setitimer(ITIMER_REAL, &timer, NULL);
  char name[32];
  for (int i = 0; i < count; ++i) {
    if (i % 1000 == 0) snprintf(name, sizeof name, "inner %d", i / 1000);
    ranges(name, 1);
  }
  memset(&timer, 0, sizeof timer);
  setitimer(ITIMER_REAL, &timer, NULL);
  printf("%d\n", (int)handled);
}

static long resident_kib(void) {
  FILE* file = fopen("/proc/self/status", "r");
  char line[256];
  long kib = -1;
  while (fgets(line, sizeof line, file) != NULL) sscanf(line, "VmRSS: %ld", &kib);
  fclose(file);
  return kib;
}

static int run_program(const char* program, const char* mode) {
  const pid_t child = fork();
  if (child == 0) {
    execl(program, program, mode, (char*)NULL);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// Waits until `file`, which receives the recorder's messages, contains `text`, for a minute at most.
static void until_said(const char* file, const char* text) {
  char said[16384];
  for (int left = 6000; left > 0; --left) {
    FILE* lines = fopen(file, "r");
    const size_t size = lines != NULL ? fread(said, 1, sizeof said - 1, lines) : 0;
    if (lines != NULL) fclose(lines);
    said[size] = '\0';
    if (strstr(said, text) != NULL) return;
    usleep(10000);
  }
}

// Sixteen collectives. Then rank 2 does something else until the recorders of both others, which wait for it, report
// that.
static void hang(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, value = 1, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 16; ++i) MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 2) {
    nvtxRangePushA("looking out of the window");
    until_said(argv[2], "hang? rank 0");
    until_said(argv[2], "hang? rank 1");
    raise(SIGKILL);
  }
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
}

// Three collectives; then rank 0 works on alone, as one that writes a checkpoint does, until that was said, and the
// others wait at the end.
static void tail(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, value = 1, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 3; ++i) MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    usleep(1600000);
    until_said(argv[2], "quiet: rank 0");
  }
  MPI_Finalize();
}

// An iteration that does not end before a hang is reported, and then no iteration until that is reported too.
static void stuck(const char* lines) {
  for (int i = 0; i < 2; ++i) {
    nvtxRangePushA("iteration");
    if (i == 1) until_said(lines, "hang?");
    nvtxRangePop();
  }
  until_said(lines, "quiet:");
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const char* mode = argv[1];
  if (strcmp(mode, "described") == 0) {
    nvtxEventAttributes_t mark = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    mark.messageType = NVTX_MESSAGE_TYPE_ASCII;
    for (int text = 0; text < 2; ++text) {
      mark.message.ascii = text == 0 ? "begin" : "{\"images_per_iteration\": 8}";
      nvtxMarkEx(&mark);
    }
    iterations("iteration", 6, -1);
    return 0;
  }
  if (strcmp(mode, "iterations") == 0) {
    iterations(argc > 2 ? argv[2] : "iteration", 60, argc > 3 ? atoi(argv[3]) : -1);
  } else if (strcmp(mode, "capture") == 0) {
    ranges("before", 5);
    cudaProfilerStart();
    ranges("captured", 5);
    cudaProfilerStop();
    ranges("between", 5);
    cudaProfilerStart();
    ranges("captured", 5);
    cudaProfilerStop();
    ranges("after", 5);
    printf("%d calls\n", stand_in_calls());
  } else if (strcmp(mode, "count") == 0) {
    count_for(atof(argv[2]), 0, argc > 3 ? argv[3] : NULL);
  } else if (strcmp(mode, "seldom") == 0) {
    for (uint64_t number = 0; number < 200; ++number) {
      numbered_mark(number);
      usleep(5000);
    }
    if (argc > 2) raise(SIGUSR2);
  } else if (strcmp(mode, "ring") == 0) {
    const uint64_t number = 60000;
    count_up_to(number);
    if (strcmp(argv[2], "signal") == 0) {
      raise(SIGUSR2);
      count_for(1.0, number, NULL);
      _exit(3);
    }
    if (strcmp(argv[2], "kill") == 0) raise(SIGKILL);
  } else if (strcmp(mode, "idle") == 0) {
    const int mpi = argc > 2;
    if (mpi) MPI_Init(&argc, &argv);
    nvtxMarkA("here");
    // Clocks are compared when a rank begins and ends, and the threads of the other rank take part in that.
    if (mpi) MPI_Barrier(MPI_COMM_WORLD);
    print_idle_threads();
    if (mpi) MPI_Barrier(MPI_COMM_WORLD);
    if (mpi) MPI_Finalize();
  } else if (strcmp(mode, "memory") == 0) {
    char name[32];
    for (int i = 0; i < 300000; ++i) {
      snprintf(name, sizeof name, "range %d", i % 20000);
      ranges(name, 3);
      if (i % 1000 == 999) usleep(1000);  // the drain must keep up
    }
    printf("%ld\n", resident_kib());
  } else if (strcmp(mode, "names") == 0) {
    char name[32];
    const int count = argc > 3 ? atoi(argv[3]) : 60000;
    for (int i = 0; i < count; ++i) {
      snprintf(name, sizeof name, "%.20s %d", argc > 2 ? argv[2] : "one of many names:", i);
      ranges(name, 1);
      if (i % 500 == 499) usleep(1000);
    }
  } else if (strcmp(mode, "overload") == 0 && argc > 2) {
    overload(atoi(argv[2]));
  } else if (strcmp(mode, "interrupted") == 0 && argc > 2) {
    interrupted(atoi(argv[2]));
  } else if (strcmp(mode, "workers") == 0) {
    end_workers();
  } else if (strcmp(mode, "quiet") == 0 && argc > 2) {
    nvtxMarkA("here");
    while (access(argv[2], F_OK) != 0) usleep(10000);
  } else if (strcmp(mode, "namespaces") == 0 && argc > 3) {
    return use_namespaces(argv[2], atoi(argv[3]));
  } else if (strcmp(mode, "ranges") == 0) {
    ranges("successor", 7);
  } else if (strcmp(mode, "fork") == 0 || strcmp(mode, "fork-exec") == 0 || strcmp(mode, "worker") == 0) {
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("kept");
    nvtxEventAttributes_t range = {0};
    range.version = NVTX_VERSION;
    range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    range.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    range.message.registered = nvtxDomainRegisterStringA(domain, "registered before");
    ranges("parent", 3);
    int status = 0;
    if (strcmp(mode, "worker") == 0) {
      setenv("RANK", "1", 1);
      setenv("WORLD_SIZE", "2", 1);
      setenv("LOCAL_RANK", "1", 1);
    }
    if (strcmp(mode, "fork") == 0) {
      const pid_t child = fork();
      if (child == 0) {
        for (int i = 0; i < 9; ++i) {
          nvtxDomainRangePushEx(domain, &range);
          nvtxDomainRangePop(domain);
        }
        exit(4);
      }
      waitpid(child, &status, 0);
      if (WEXITSTATUS(status) != 4) return 1;
    } else {
      status = run_program(argc > 2 ? argv[2] : argv[0], "ranges");
      if (status != 0) return 1;
    }
    ranges("parent", 3);
  } else if (strcmp(mode, "exec") == 0) {
    ranges("predecessor", 5);
    execl(argv[0], argv[0], "ranges", (char*)NULL);
  } else if (strcmp(mode, "hang") == 0 && argc > 2) {
    hang(argc, argv);
  } else if (strcmp(mode, "tail") == 0 && argc > 2) {
    tail(argc, argv);
  } else if (strcmp(mode, "stuck") == 0 && argc > 2) {
    stuck(argv[2]);
  } else if (strcmp(mode, "no-counter") == 0 || strcmp(mode, "no-counter-at-all") == 0) {
    if (strcmp(mode, "no-counter") == 0) ranges("range", 1000);
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    ranges("range", 1000);
    prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
    return 7;
  } else if (strcmp(mode, "status") == 0) {
    ranges("range", 1000);
    return 7;
  } else if (strcmp(mode, "kill-self") == 0) {
    ranges("range", 1000);
    raise(SIGTERM);
  } else {
    return 2;
  }
  return 0;
}
