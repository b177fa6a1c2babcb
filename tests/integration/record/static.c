// SPDX-License-Identifier: Apache-2.0
/* usage: static [FILE]: a statically linked program with NVTX ranges; with FILE it prints whether NVTX could load that.
 */
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

int main(int count, char** arguments) {
  nvtxRangePushA("work");
  nvtxMarkA("mark");
  nvtxRangePop();
  puts("static");
  if (count > 1) puts(dlopen(arguments[1], RTLD_NOW) != NULL ? "loaded" : "not loaded");
  return 5;
}
