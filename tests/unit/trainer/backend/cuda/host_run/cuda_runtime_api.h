// SPDX-License-Identifier: Apache-2.0
// The host run: kernels of the trainer, from the same .cu files, on the CPU and without the CUDA toolkit. This header
// has the parts of the runtime and of device code that they use. The threads of a block take turns on stacks of their
// own, from one barrier or shuffle to the next, upwards or downwards through their numbers: a kernel that lacks a
// barrier gives wrong numbers in one of the two orders. Sanitizers see all accesses, those that are not aligned as a
// GPU demands among them. A host run shows nothing about a GPU's own compiler, memory or speed.
#pragma once

#include <math.h>

#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)

using cudaStream_t = struct HostStream*;
using cudaEvent_t = struct HostEvent*;

struct __attribute__((may_alias, aligned(8))) uint2 {
  unsigned x, y;
};
struct __attribute__((may_alias, aligned(8))) float2 {
  float x, y;
};
struct __attribute__((may_alias, aligned(16))) float4 {
  float x, y, z, w;
};
struct __attribute__((may_alias, aligned(4))) uchar4 {
  unsigned char x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uchar4 make_uchar4(unsigned char x, unsigned char y, unsigned char z, unsigned char w) { return {x, y, z, w}; }
inline float __fdiv_rn(float x, float y) { return x / y; }

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned in_x = 1, unsigned in_y = 1) : x(in_x), y(in_y) {}
};
inline dim3 threadIdx, blockIdx, gridDim, blockDim;

namespace host_run {

inline bool downwards = false;  // the order of the threads and blocks

void run(dim3 grid, dim3 block, const std::function<void()>& thread);
void barrier();

// The value of the thread whose number within its warp differs in the bits of `distance`. Ends the program if that
// thread does not take part.
double from_neighbour(double value, int distance);

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t, Arguments... arguments) {
  run(grid, block, [&] { kernel(arguments...); });
}

}  // namespace host_run

inline void __syncthreads() { host_run::barrier(); }
inline double __shfl_xor_sync(unsigned, double value, int distance) {
  return host_run::from_neighbour(value, distance);
}

// What the optimizers call: copies are done when these return.
using cudaError_t = int;
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return 0;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
inline cudaError_t cudaMemset(void* to, int byte, std::size_t bytes) {
  if (bytes > 0) std::memset(to, byte, bytes);
  return 0;
}
inline cudaError_t cudaDeviceSynchronize() { return 0; }
