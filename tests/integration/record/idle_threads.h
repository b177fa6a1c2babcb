// SPDX-License-Identifier: Apache-2.0
// The work of the recorder's threads while a program is idle.
#ifndef PACELINE_TESTS_IDLE_THREADS_H
#define PACELINE_TESTS_IDLE_THREADS_H

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { most_threads = 16 };
struct thread_time {
  char name[32];
  long ns, turns;  // on a CPU
};

// The use of CPUs by the recorder's threads so far, which are identified by their names.
static int recorder_times(struct thread_time* times) {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  for (const struct dirent* task; (task = readdir(tasks)) != NULL && count < most_threads;) {
    char path[512], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    FILE* file = fopen(path, "r");
    if (file == NULL) continue;
    if (fscanf(file, "%31s", name) != 1) name[0] = '\0';
    fclose(file);
    if (strncmp(name, "paceline", 8) != 0) continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
    file = fopen(path, "r");
    if (file == NULL) continue;
    memcpy(times[count].name, name, sizeof name);
    if (fscanf(file, "%ld %*d %ld", &times[count].ns, &times[count].turns) == 2) ++count;
    fclose(file);
  }
  closedir(tasks);
  return count;
}

// Prints "NAME NS TURNS" for each of the recorder's threads: how often it comes onto a CPU in a second in which the
// program sleeps, and its CPU time there. The turns are the most of three seconds. The time is the least of them: a
// virtual machine whose pages the host takes away waits for them, and that counts as the thread's time. A thread that
// spins does so in each second.
static void print_idle_threads(void) {
  struct thread_time before[most_threads], after[most_threads], of_second[most_threads];
  usleep(500000);  // first they set their names and allocate their memory
  int count = recorder_times(before);
  for (int second = 0; second < 3; ++second) {
    usleep(1000000);
    const int now = recorder_times(after);
    if (now < count) count = now;
    for (int i = 0; i < count; ++i) {
      const long ns = after[i].ns - before[i].ns, turns = after[i].turns - before[i].turns;
      if (second == 0 || ns < of_second[i].ns) of_second[i].ns = ns;
      if (second == 0 || turns > of_second[i].turns) of_second[i].turns = turns;
      before[i] = after[i];
    }
  }
  for (int i = 0; i < count; ++i) printf("%s %ld %ld\n", after[i].name, of_second[i].ns, of_second[i].turns);
}

#endif
