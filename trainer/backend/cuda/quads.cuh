// SPDX-License-Identifier: Apache-2.0
// Memory bandwidth limits these kernels. So each thread moves four neighbouring channels at a time, and all threads
// decide on the storage at run time, which avoids compiling each kernel three times.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstddef>

#include "trainer/backend/cuda/kernels.h"
#include "trainer/backend/cuda/launch.cuh"

namespace paceline::train::cuda {

inline __device__ float4 load4(const void* values, Storage storage, std::size_t quad) {
  if (storage == Storage::f32) return static_cast<const float4*>(values)[quad];
  const uint2 raw = static_cast<const uint2*>(values)[quad];
  float2 low, high;
  if (storage == Storage::bf16) {
    low = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(raw.x));
    high = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(raw.y));
  } else {
    low = __half22float2(reinterpret_cast<const __half2&>(raw.x));
    high = __half22float2(reinterpret_cast<const __half2&>(raw.y));
  }
  return make_float4(low.x, low.y, high.x, high.y);
}

inline __device__ void store4(void* values, Storage storage, std::size_t quad, float4 v) {
  if (storage == Storage::f32) {
    static_cast<float4*>(values)[quad] = v;
    return;
  }
  uint2 raw;
  if (storage == Storage::bf16) {
    reinterpret_cast<__nv_bfloat162&>(raw.x) = __floats2bfloat162_rn(v.x, v.y);
    reinterpret_cast<__nv_bfloat162&>(raw.y) = __floats2bfloat162_rn(v.z, v.w);
  } else {
    reinterpret_cast<__half2&>(raw.x) = __floats2half2_rn(v.x, v.y);
    reinterpret_cast<__half2&>(raw.y) = __floats2half2_rn(v.z, v.w);
  }
  static_cast<uint2*>(values)[quad] = raw;
}

inline __device__ void store1(void* values, Storage storage, std::size_t i, float v) {
  if (storage == Storage::f32)
    static_cast<float*>(values)[i] = v;
  else if (storage == Storage::bf16)
    static_cast<__nv_bfloat16*>(values)[i] = __float2bfloat16_rn(v);
  else
    static_cast<__half*>(values)[i] = __float2half_rn(v);
}

inline __device__ float load1(const void* values, Storage storage, std::size_t i) {
  if (storage == Storage::f32) return static_cast<const float*>(values)[i];
  if (storage == Storage::bf16) return __bfloat162float(static_cast<const __nv_bfloat16*>(values)[i]);
  return __half2float(static_cast<const __half*>(values)[i]);
}

template <class F>
__device__ float4 map(float4 a, F f) {
  return make_float4(f(a.x), f(a.y), f(a.z), f(a.w));
}
template <class F>
__device__ float4 map(float4 a, float4 b, F f) {
  return make_float4(f(a.x, b.x), f(a.y, b.y), f(a.z, b.z), f(a.w, b.w));
}
inline __device__ float4 operator+(float4 a, float4 b) {
  return map(a, b, [](float x, float y) { return x + y; });
}

// Keeps NaN, because a finite loss would hide it.
inline __device__ float4 positive(float4 v) {
  return map(v, [](float x) { return x <= 0 ? 0.0f : x; });
}
inline __device__ float4 where_positive(float4 y, float4 dy) {
  return map(y, dy, [](float out, float gradient) { return out > 0 ? gradient : 0.0f; });
}

// ---- element-wise: body(quad) for every four values ----

template <class Body>
__global__ void __launch_bounds__(256) each_quad_kernel(std::size_t quads, Body body) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < quads; i += step) body(i);
}

template <class Body>
void each_quad(cudaStream_t stream, std::size_t quads, Body body) {
  if (quads == 0) return;
  const auto blocks = static_cast<unsigned>(std::min<std::size_t>((quads + 255) / 256, 16384));
  launch(each_quad_kernel<Body>, blocks, 256, stream, quads, body);
}

inline std::size_t quads_of(std::size_t count) { return (count + 3) / 4; }

}  // namespace paceline::train::cuda
