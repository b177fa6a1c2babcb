// SPDX-License-Identifier: Apache-2.0
// Part of the host run: fp16 as the CPU's communicators round it, which have tests of their own.
#pragma once

#include "cuda_runtime_api.h"
#include "trainer/core/cast.h"

struct __attribute__((may_alias)) __half {
  std::uint16_t bits;
};
struct __attribute__((may_alias, aligned(4))) __half2 {
  __half x, y;
};

inline __half __float2half_rn(float value) {
  __half result;
  paceline::train::to_half({&value, 1}, 1, &result.bits);
  return result;
}
inline float __half2float(__half value) { return paceline::train::float_from_half(value.bits); }
inline __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
inline float2 __half22float2(__half2 value) { return {__half2float(value.x), __half2float(value.y)}; }
