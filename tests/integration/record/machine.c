// SPDX-License-Identifier: Apache-2.0
// usage: machine WHAT MILLISECONDS|FILE. Uses the resources that counters measure, inside one NVTX range, and prints
// the amounts.
//   work    computes, fills 64 MiB, sends 4 MiB to itself over the loopback, starts a thread
//   close   when there is a file `sampled`, closes all files that it did not open, and has files of its own under their
//           numbers
//   fork    a child sleeps and ends with exit handlers, while this process does too
//   wait    sleeps until FILE exists, for a minute at most
#include <fcntl.h>
#include <netinet/in.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void* rest(void* seconds) {
  usleep((useconds_t)(1e6 * *(double*)seconds));
  return NULL;
}

static void send_to_itself(void) {
  static char bytes[16 * 1024];
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof address;
  const int receiver = socket(AF_INET, SOCK_DGRAM, 0), sender = socket(AF_INET, SOCK_DGRAM, 0);
  if (bind(receiver, (struct sockaddr*)&address, length) != 0) exit(3);
  if (getsockname(receiver, (struct sockaddr*)&address, &length) != 0) exit(3);
  for (int packet = 0; packet < 256; ++packet) {
    if (sendto(sender, bytes, sizeof bytes, 0, (struct sockaddr*)&address, length) != (ssize_t)sizeof bytes) exit(3);
    if (recv(receiver, bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) exit(3);
  }
  close(receiver);
  close(sender);
}

static void work(double seconds) {
  const double end = now() + seconds;
  usleep(100 * 1000);  // a sampling before
  pthread_t thread;
  pthread_create(&thread, NULL, rest, &seconds);
  const size_t size = 64u << 20;
  volatile char* memory = malloc(size);  // volatile, because memory that is never read would not be written
  for (size_t at = 0; at < size; at += 1024) memory[at] = 1;
  send_to_itself();
  volatile double sum = memory[size / 2];
  while (now() < end) sum = sum * 1.0000001 + 1;
  pthread_join(thread, NULL);
  free((void*)memory);
}

// A minute at most.
static void wait_for(const char* file) {
  for (int left = 6000; left > 0 && access(file, F_OK) != 0; --left) usleep(10 * 1000);
}

static void close_files(double seconds) {
  wait_for("sampled");
  for (int file = 3; file < 1024; ++file) close(file);
  int own[100];
  for (int i = 0; i < 100; ++i) {
    own[i] = open("own.txt", O_RDWR | O_CREAT | O_APPEND, 0666);
    if (own[i] < 0 || write(own[i], "x", 1) != 1) exit(4);
  }
  rest(&seconds);
  for (int i = 0; i < 100; ++i) {
    if (write(own[i], "y", 1) != 1) exit(5);
  }
}

static void with_child(double seconds) {
  rest(&seconds);
  const pid_t child = fork();
  rest(&seconds);
  if (child == 0) exit(0);
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) exit(6);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const double seconds = 1e-3 * atof(argv[2]);
  nvtxRangePushA("work");
  if (strcmp(argv[1], "work") == 0) work(seconds);
  if (strcmp(argv[1], "close") == 0) close_files(seconds);
  if (strcmp(argv[1], "fork") == 0) with_child(seconds);
  if (strcmp(argv[1], "wait") == 0) wait_for(argv[2]);
  nvtxRangePop();
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("%.6f %ld\n",
         (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
             1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec),
         usage.ru_minflt);
  return 0;
}
