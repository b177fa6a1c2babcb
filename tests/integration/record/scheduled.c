// SPDX-License-Identifier: Apache-2.0
// usage: scheduled PART…
//
// Each part is a range on the main thread: spin, iteration, sleep, naps, yields, fork, exec, threads, pipe, talkers.
// Prints for each range its name, and what the system counted for the main thread in it: the time on a CPU and the time
// that it waited for one, ns.
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void spin(long long ns) {
  const long long end = now(CLOCK_MONOTONIC) + ns;
  while (now(CLOCK_MONOTONIC) < end) {
  }
}

static long long waited(void) {
  FILE* file = fopen("/proc/thread-self/schedstat", "r");
  long long running = 0, waiting = 0;
  if (file == NULL || fscanf(file, "%lld %lld", &running, &waiting) != 2) exit(3);
  fclose(file);
  return waiting;
}

static void* work(void* unused) {
  spin(1000000);
  usleep(150000);  // a turn that costs much comes seldom
  return unused;
}

// A hundred threads, twenty at a time.
static void come_and_go(void) {
  for (int turn = 0; turn < 5; ++turn) {
    pthread_t threads[20];
    for (int i = 0; i < 20; ++i) {
      if (pthread_create(&threads[i], NULL, work, NULL) != 0) exit(3);
    }
    for (int i = 0; i < 20; ++i) pthread_join(threads[i], NULL);
  }
}

static int there[2], back[2];
static void* answer(void* unused) {
  char byte;
  while (read(there[0], &byte, 1) == 1) {
    if (write(back[1], &byte, 1) != 1) break;
  }
  return unused;
}

// Tens of thousands of switches a second, until three and a half seconds have passed.
static void* talk(void* unused) {
  pthread_t other;
  if (pipe(there) != 0 || pipe(back) != 0 || pthread_create(&other, NULL, answer, NULL) != 0) exit(3);
  const long long end = now(CLOCK_MONOTONIC) + 3500000000LL;
  char byte = 0;
  while (now(CLOCK_MONOTONIC) < end) {
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) exit(3);
  }
  close(there[1]);
  pthread_join(other, NULL);
  return unused;
}

// The same in two other threads, while the main one waits.
static void let_others_talk(void) {
  pthread_t first;
  if (pthread_create(&first, NULL, talk, NULL) != 0) exit(3);
  pthread_join(first, NULL);
}

static void do_part(const char* part) {
  if (strcmp(part, "spin") == 0) {
    spin(400000000);
  } else if (strcmp(part, "iteration") == 0) {
    spin(200000000);
  } else if (strcmp(part, "sleep") == 0) {
    usleep(300000);
  } else if (strcmp(part, "naps") == 0) {
    for (int i = 0; i < 100; ++i) {
      spin(1000000);
      usleep(2000);
    }
  } else if (strcmp(part, "yields") == 0) {
    for (int i = 0; i < 200; ++i) {
      spin(1000000);
      sched_yield();
    }
  } else if (strcmp(part, "threads") == 0) {
    come_and_go();
  } else if (strcmp(part, "pipe") == 0) {
    talk(NULL);
  } else if (strcmp(part, "talkers") == 0) {
    let_others_talk();
  }
}

static void measure(const char* part) {
  const long long cpu = now(CLOCK_THREAD_CPUTIME_ID), delay = waited();
  nvtxRangePushA(part);
  do_part(part);
  nvtxRangePop();
  printf("%s %lld %lld\n", part, now(CLOCK_THREAD_CPUTIME_ID) - cpu, waited() - delay);
  fflush(stdout);
}

int main(int count, char** parts) {
  for (int i = 1; i < count; ++i) {
    if (strcmp(parts[i], "fork") == 0) {
      const pid_t child = fork();
      if (child != 0) {
        waitpid(child, NULL, 0);
        continue;
      }
      measure("naps");
      return 0;
    }
    if (strcmp(parts[i], "exec") == 0) {
      execl("/proc/self/exe", parts[0], "naps", (char*)NULL);
      return 3;
    }
    measure(parts[i]);
  }
  return 0;
}
