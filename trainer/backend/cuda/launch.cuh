// Launches a kernel. Without nvcc, `launch` comes from a mock of CUDA that runs the threads on the CPU
// (tests/unit/trainer/backend/cuda/mock_cuda), so that tests without a GPU can check the arithmetic.
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
using mock_cuda::launch;
#endif

}  // namespace paceline::train::cuda
