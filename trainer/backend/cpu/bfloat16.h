// SPDX-License-Identifier: Apache-2.0
// bf16 numbers for kernels: stored in 16 bits, computed in fp32, rounded to nearest even.
#pragma once

#include "trainer/core/cast.h"

namespace paceline::train {

struct Bf16 {
  std::uint16_t bits;
};

inline float load(float value) { return value; }
inline float load(Bf16 value) { return float_from_bfloat16(value.bits); }
inline void store(float value, float& to) { to = value; }
inline void store(float value, Bf16& to) { to.bits = bfloat16_from_float(value); }

// Chooses among stored numbers: of a choice before the rounding, GCC makes a branch, which random signs make slow.
inline float zero_unless(bool keep, float value) { return keep ? value : 0; }
inline Bf16 zero_unless(bool keep, Bf16 value) { return {static_cast<std::uint16_t>(keep ? value.bits : 0)}; }

}  // namespace paceline::train
