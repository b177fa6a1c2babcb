// SPDX-License-Identifier: Apache-2.0
// Forks in a loop while other threads make their first NVTX calls. Prints how many children hung. It knows nothing of
// Paceline.
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t start;

static void* call(void* delay_us) {
  pthread_barrier_wait(&start);
  usleep((useconds_t)(intptr_t)delay_us);
  nvtxRangePushA("thread");
  nvtxRangePop();
  return NULL;
}

int main(void) {
  enum { threads = 4, forks = 25 };
  pthread_t thread[threads];
  pthread_barrier_init(&start, NULL, threads + 1);
  for (int i = 0; i < threads; ++i) pthread_create(&thread[i], NULL, call, (void*)(intptr_t)(i * 200));
  pthread_barrier_wait(&start);
  int hung = 0;
  for (int i = 0; i < forks && hung == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      nvtxRangePushA("child");
      nvtxRangePop();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    hung += WIFSIGNALED(status);
  }
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
  printf("%d\n", hung);
  return hung;
}
