// The start of a kernel. Of kernels that are started so the arithmetic is tested without a GPU: what is not compiled by
// nvcc gets `launch` from a mock of CUDA, which runs their threads on the CPU (tests/unit/trainer/mock_cuda).
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
