// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcuda.so.1, for machines without a GPU: it loads what CUDA_INJECTION64_PATH names when it is
// initialised, as the driver does. It can do nothing else.
#include <dlfcn.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

EXPORT int cuInit(unsigned flags) {
  (void)flags;
  const char* path = getenv("CUDA_INJECTION64_PATH");
  void* library = path != NULL ? dlopen(path, RTLD_NOW) : NULL;
  int (*initialize)(void) = library != NULL ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
  if (initialize != NULL) initialize();
  return 0;
}
