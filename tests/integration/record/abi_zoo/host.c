// SPDX-License-Identifier: Apache-2.0
// usage: host PLUGIN [STATUS]: loads program.c, which was built with -DPLUGIN, and with it MPI, as interpreters do.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) return fprintf(stderr, "%s\n", dlerror()), 92;
  return ((int (*)(int, char**))dlsym(plugin, "run"))(argc - 1, argv + 1);
}
