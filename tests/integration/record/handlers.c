// SPDX-License-Identifier: Apache-2.0
// A timer's handler emits ranges while the program starts: handlers PERIOD_US nvtx|mpi before|during|child
//
//   before   the program emits a mark before the timer runs, so NVTX has been initialised
//   during   the timer runs first, so the handler itself may initialise NVTX, at any place of the program's start
//   child    as `before`, and a forked child emits ranges while the timer interrupts it
//
// Prints how many ranges the handler emitted and the program emitted itself.
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t handled = 0;

static void on_timer(int number) {
  (void)number;
  nvtxRangePushA("handler");
  nvtxRangePop();
  ++handled;
}

static void run_timer(int period_us) {
  const struct itimerval timer = {{0, period_us}, {0, period_us}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void emit_own(int count) {
  for (int i = 0; i < count; ++i) {
    char name[32];
    snprintf(name, sizeof name, "own %d", i);
    nvtxRangePushA(name);
    nvtxRangePop();
  }
}

int main(int count, char** arguments) {
  enum { own = 200 };
  if (count != 4) return 2;
  const int period_us = atoi(arguments[1]);
  const int uses_mpi = strcmp(arguments[2], "mpi") == 0;
  struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  if (strcmp(arguments[3], "during") != 0) nvtxMarkA("start");
  run_timer(period_us);
  if (uses_mpi) MPI_Init(NULL, NULL);
  emit_own(own);
  if (strcmp(arguments[3], "child") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      run_timer(period_us);
      emit_own(own);
      _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) continue;
    if (status != 0) return 1;
  }
  if (uses_mpi) MPI_Finalize();
  run_timer(0);
  printf("%d %d\n", (int)handled, own);
  return 0;
}
