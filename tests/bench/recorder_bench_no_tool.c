// SPDX-License-Identifier: Apache-2.0
// NVTX in a shared object of its own, which is so a copy of its own: used first, while no tool is told to it.
#include <nvtx3/nvToolsExt.h>

void push_and_pop_without_tool(void) {
  nvtxRangePushA("range");
  nvtxRangePop();
}
