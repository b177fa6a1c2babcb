// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "trainer/backend/cuda/launch.cuh"
#include "trainer/comm/gpu/numbers.h"

// Not in namespace nccl, so that tools which look for NCCL in kernel names do not find these kernels.
namespace paceline::train::gradient_numbers {

namespace {

constexpr int threads = 256;
constexpr std::size_t most_blocks = 1024;  // the loop takes strides of the whole grid

__device__ float to_float(float value) { return value; }
__device__ float to_float(__half value) { return __half2float(value); }
__device__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename T>
__device__ T from_float(float value);
template <>
__device__ float from_float<float>(float value) {
  return value;
}
template <>
__device__ __half from_float<__half>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}

struct Quotient {
  float divisor;
  __device__ float operator()(float value) const { return __fdiv_rn(value, divisor); }
};
struct Same {
  __device__ float operator()(float value) const { return value; }
};

template <typename To, typename From, typename Change>
__global__ void change(const From* from, To* to, std::size_t count, Change how) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    to[i] = from_float<To>(how(to_float(from[i])));
  }
}

template <typename T>
__global__ void sum(T* into, const T* from, std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    into[i] = from_float<T>(to_float(into[i]) + to_float(from[i]));
  }
}

}  // namespace
}  // namespace paceline::train::gradient_numbers

namespace paceline::train::nccl {

using namespace gradient_numbers;

namespace {

unsigned blocks(std::size_t count) {
  return static_cast<unsigned>(std::min((count + threads - 1) / threads, most_blocks));
}

template <typename To, typename From, typename Change>
void change_all(const void* from, void* to, std::size_t count, Change how, cudaStream_t stream) {
  if (count == 0) return;
  cuda::launch(change<To, From, Change>, blocks(count), threads, stream, static_cast<const From*>(from),
               static_cast<To*>(to), count, how);
}

template <typename T>
void add_all(void* into, const void* from, std::size_t count, cudaStream_t stream) {
  if (count == 0) return;
  cuda::launch(sum<T>, blocks(count), threads, stream, static_cast<T*>(into), static_cast<const T*>(from), count);
}

}  // namespace

void divide(float* values, std::size_t count, float divisor, cudaStream_t stream) {
  change_all<float, float>(values, values, count, Quotient{divisor}, stream);
}

void narrow(Type type, const float* values, std::size_t count, float divisor, void* out, cudaStream_t stream) {
  if (type == Type::f16) return change_all<__half, float>(values, out, count, Quotient{divisor}, stream);
  change_all<__nv_bfloat16, float>(values, out, count, Quotient{divisor}, stream);
}

void widen(Type type, const void* values, std::size_t count, float* out, cudaStream_t stream) {
  if (type == Type::f16) return change_all<float, __half>(values, out, count, Same{}, stream);
  change_all<float, __nv_bfloat16>(values, out, count, Same{}, stream);
}

void add(Type type, void* into, const void* from, std::size_t count, cudaStream_t stream) {
  if (type == Type::f32) return add_all<float>(into, from, count, stream);
  if (type == Type::f16) return add_all<__half>(into, from, count, stream);
  add_all<__nv_bfloat16>(into, from, count, stream);
}

}  // namespace paceline::train::nccl
