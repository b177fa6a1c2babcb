// SPDX-License-Identifier: Apache-2.0
// Launches a kernel. Without a CUDA compiler, `launch` comes from the header of the host run, which runs the threads on
// the CPU (tests/unit/trainer/backend/cuda/host_run), so that tests without a GPU can check the kernels.
#pragma once

#include "trainer/backend/cuda/runtime.h"

namespace paceline::train::cuda {

#ifdef __CUDACC__
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream, Arguments... arguments) {
  kernel<<<grid, block, 0, stream>>>(arguments...);
  PACELINE_CHECK_CUDA(cudaGetLastError());
}
#else
using host_run::launch;
#endif

}  // namespace paceline::train::cuda
