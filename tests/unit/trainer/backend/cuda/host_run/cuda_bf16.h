// SPDX-License-Identifier: Apache-2.0
// Part of the host run: bf16 as the CPU's communicators round it, which have tests of their own.
#pragma once

#include "cuda_runtime_api.h"
#include "trainer/core/cast.h"

struct __attribute__((may_alias)) __nv_bfloat16 {
  std::uint16_t bits;
};
struct __attribute__((may_alias, aligned(4))) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  __nv_bfloat16 result;
  paceline::train::to_bfloat16({&value, 1}, 1, &result.bits);
  return result;
}
inline float __bfloat162float(__nv_bfloat16 value) { return paceline::train::float_from_bfloat16(value.bits); }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
inline float2 __bfloat1622float2(__nv_bfloat162 value) {
  return {__bfloat162float(value.x), __bfloat162float(value.y)};
}
