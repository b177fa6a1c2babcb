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
  long ns;
};

// The CPU time of the recorder's threads so far, which are identified by their names.
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
    if (fscanf(file, "%ld", &times[count].ns) == 1) ++count;
    fclose(file);
  }
  closedir(tasks);
  return count;
}

// Prints "NAME NS" for each of the recorder's threads: its CPU time while the program sleeps for a second.
static void print_idle_threads(void) {
  struct thread_time before[most_threads], after[most_threads];
  usleep(500000);  // first they set their names and allocate their memory
  const int count = recorder_times(before);
  usleep(1000000);
  recorder_times(after);
  for (int i = 0; i < count; ++i) printf("%s %ld\n", after[i].name, after[i].ns - before[i].ns);
}

#endif
