// SPDX-License-Identifier: Apache-2.0
// Ways to run and to end: ways MODE [ARGUMENT]. It knows nothing of Paceline.
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void ranges(long count) {
  for (long i = 0; i < count; ++i) {
    nvtxRangePushA("range");
    nvtxRangePop();
  }
}

// Ranges that do not compress below 8 bytes, at a rate that the drain can follow.
static void random_payloads(long count) {
  nvtxEventAttributes_t attributes = {0};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = "range";
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = 88172645463325252u;  // Marsaglia's xorshift
  for (long i = 0; i < count; ++i) {
    attributes.payload.ullValue ^= attributes.payload.ullValue << 13;
    attributes.payload.ullValue ^= attributes.payload.ullValue >> 7;
    attributes.payload.ullValue ^= attributes.payload.ullValue << 17;
    nvtxRangePushEx(&attributes);
    nvtxRangePop();
    if (i % 2000 == 1999) usleep(1000);
  }
}

// Counts ranges in a file that outlives this process, until it is killed: FILE holds the pid, then the count.
static void count_until_killed(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT, 0666);
  if (file < 0 || ftruncate(file, 16) != 0) exit(1);
  volatile uint64_t* shared = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const struct timespec pause = {0, 1000};
  for (;;) {
    ranges(1);
    ++shared[1];
    shared[0] = (uint64_t)getpid();
    nanosleep(&pause, NULL);
  }
}

static void* exit_with_6(void* unused) {
  ranges(1000);
  exit(6);
  return unused;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const char* mode = argv[1];
  if (strcmp(mode, "nothing") == 0) return 0;
  if (strcmp(mode, "kill") == 0) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    ranges(10);
    if (rank == 1) count_until_killed(argv[2]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
  }
  if (strcmp(mode, "steady") == 0) {
    random_payloads(atol(argv[2]));
    puts("done");
    return 0;
  }
  ranges(argc > 2 ? atol(argv[2]) : 1000);
  if (strcmp(mode, "abort") == 0) abort();
  if (strcmp(mode, "crash") == 0) {
    *(volatile char*)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) = 1;
  }
  if (strcmp(mode, "_exit") == 0) _exit(7);
  if (strcmp(mode, "thread_exit") == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, exit_with_6, NULL) != 0) return 1;
    for (;;) ranges(1);
  }
  if (strcmp(mode, "quick_exit") == 0) quick_exit(5);
  if (strcmp(mode, "exec") == 0) execl(argv[0], argv[0], "return", "500", (char*)NULL);
  if (strcmp(mode, "exec_fails") == 0) {
    execl("/no/such/program", "program", "argument", (char*)NULL);
    if (errno != ENOENT) return 1;
    ranges(200);
  }
  // A child that shares this process's memory ends, and a child that becomes another program ends.
  if (strcmp(mode, "vfork") == 0) {
    for (volatile int way = 0; way < 2; ++way) {
      const pid_t child = vfork();
      if (child == 0) {
        if (way == 0) execl("/bin/true", "true", (char*)NULL);
        _exit(way);
      }
      int status = 0;
      waitpid(child, &status, 0);
      if (!WIFEXITED(status) || WEXITSTATUS(status) != way) return 1;
      ranges(100);
    }
  }
  if (strcmp(mode, "fork") == 0) {
    if (fork() == 0) {
      ranges(100);
      exit(0);
    }
    wait(NULL);
    ranges(1);
  }
  puts("done");
  return 0;
}
