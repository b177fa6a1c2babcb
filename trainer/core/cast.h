// SPDX-License-Identifier: Apache-2.0
// Casts between fp32 and the 16-bit types, rounded to nearest, ties to even. Infinities and NaNs are kept, and values
// beyond the range become infinities. The functions of one number define the result bit by bit; the loops give the same
// bits with vector instructions (F16C if the processor has it, which is found out at run time).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline::train {

// IEEE 754 binary16: 5 bits of exponent, 10 of fraction, subnormal below 2^-14.
inline std::uint16_t half_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  std::uint32_t size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | (size >> 13 & 0x3ffu));  // NaN, quiet
  if (size >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65520, halfway past the largest
  if (size < 0x38800000u) {
    // Next to 0.5 the last bit of an fp32 is 2^-24, which is that of a subnormal half: the addition rounds.
    const float rounded = std::bit_cast<float>(size) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000u));
  }
  size += 0xfffu + (size >> 13 & 1u);
  return static_cast<std::uint16_t>(sign | (size - 0x38000000u) >> 13);
}

inline float float_from_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t size = half & 0x7fffu;
  if (size < 0x400u) {  // subnormal, or zero
    const float value = static_cast<float>(size) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  if (size < 0x7c00u) return std::bit_cast<float>(sign | ((size << 13) + 0x38000000u));
  const std::uint32_t quiet = size > 0x7c00u ? 0x400000u : 0u;
  return std::bit_cast<float>(sign | 0x7f800000u | quiet | (size & 0x3ffu) << 13);
}

// bfloat16: an fp32 without its lower 16 bits of fraction.
inline std::uint16_t bfloat16_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  const std::uint32_t quiet_nan = bits | 0x400000u;
  return static_cast<std::uint16_t>(((bits & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded) >> 16);
}

inline float float_from_bfloat16(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

// out[i] = values[i] / divisor, rounded twice: to fp32, then to the type.
void to_half(std::span<const float> values, float divisor, std::uint16_t* out);
void to_bfloat16(std::span<const float> values, float divisor, std::uint16_t* out);

void from_half(const std::uint16_t* values, std::span<float> out);
void from_bfloat16(const std::uint16_t* values, std::span<float> out);

// into[i] += from[i], added in fp32 and rounded.
void add_half(std::uint16_t* into, const std::uint16_t* from, std::size_t count);
void add_bfloat16(std::uint16_t* into, const std::uint16_t* from, std::size_t count);

}  // namespace paceline::train
