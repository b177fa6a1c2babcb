// A mock of CUDA for tests of kernels without a GPU and without the toolkit. It has the parts of the runtime and of
// device code that by_channel.cu and elementwise.cu use. The threads of a block run in turns on their own stacks from
// one barrier to the next. The mock does not detect races, nor accesses to memory that a GPU cannot reach, and does not
// test nvcc's code.
#pragma once

#include <math.h>

#include <cstdint>
#include <functional>

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)

using cudaStream_t = struct MockStream*;
using cudaEvent_t = struct MockEvent*;
using cudaError_t = int;

struct __attribute__((may_alias)) uint2 {
  unsigned x, y;
};
struct __attribute__((may_alias)) float2 {
  float x, y;
};
struct __attribute__((may_alias)) float4 {
  float x, y, z, w;
};
struct __attribute__((may_alias)) uchar4 {
  unsigned char x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uchar4 make_uchar4(unsigned char x, unsigned char y, unsigned char z, unsigned char w) { return {x, y, z, w}; }

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned in_x = 1, unsigned in_y = 1) : x(in_x), y(in_y) {}
};
inline dim3 threadIdx, blockIdx, gridDim, blockDim;

namespace mock_cuda {

void run(dim3 grid, dim3 block, const std::function<void()>& thread);
void barrier();

// The value of the thread whose number within the block differs in the bits of `distance`.
double from_neighbour(double value, int distance);

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t, Arguments... arguments) {
  run(grid, block, [&] { kernel(arguments...); });
}

}  // namespace mock_cuda

inline void __syncthreads() { mock_cuda::barrier(); }
inline double __shfl_xor_sync(unsigned, double value, int distance) {
  return mock_cuda::from_neighbour(value, distance);
}
