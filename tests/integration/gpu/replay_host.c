// SPDX-License-Identifier: Apache-2.0
// usage: replay_host RECORDS: initialises the (stand-in) driver, and lets the stand-in of CUPTI deliver the records of
// that file, each when its time has come.
#include <dlfcn.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char** arguments) {
  if (count != 2) return fputs("usage: replay_host RECORDS\n", stderr), 2;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*init)(unsigned) = driver != NULL ? (int (*)(unsigned))dlsym(driver, "cuInit") : NULL;
  if (init == NULL || init(0) != 0) return fputs("replay_host: no driver\n", stderr), 1;
  void* cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  int (*replay)(const char*, unsigned) =
      cupti != NULL ? (int (*)(const char*, unsigned))dlsym(cupti, "stand_in_replay") : NULL;
  if (replay == NULL) return fputs("replay_host: the stand-in of CUPTI is not loaded\n", stderr), 1;
  return replay(arguments[1], (unsigned)syscall(SYS_gettid));
}
