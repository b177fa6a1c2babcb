// SPDX-License-Identifier: Apache-2.0
#include "trainer/core/cast.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "trainer/core/vectorize.h"

namespace paceline::train {

#if defined(__x86_64__)
namespace {

#define PACELINE_F16C __attribute__((target("avx,f16c")))

bool find_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  // The builtin also checks that the system saves the wide registers. Not every compiler knows F16C by name there.
  return __builtin_cpu_supports("avx") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

const bool has_f16c = find_f16c();

// Each converts the largest multiple of 8 values and returns that number.
PACELINE_F16C std::size_t to_half_by_8(const float* values, std::size_t count, float divisor, std::uint16_t* out) {
  const __m256 divisors = _mm256_set1_ps(divisor);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 quotients = _mm256_div_ps(_mm256_loadu_ps(values + i), divisors);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_cvtps_ph(quotients, _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}

PACELINE_F16C std::size_t from_half_by_8(const std::uint16_t* values, float* out, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values + i))));
  }
  return i;
}

PACELINE_F16C std::size_t add_half_by_8(std::uint16_t* into, const std::uint16_t* from, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 a = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(into + i)));
    const __m256 b = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    const __m128i sum = _mm256_cvtps_ph(_mm256_add_ps(a, b), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into + i), sum);
  }
  return i;
}

}  // namespace
#endif

void to_half(std::span<const float> values, float divisor, std::uint16_t* out) {
  std::size_t i = 0;
#if defined(__x86_64__)
  if (has_f16c) i = to_half_by_8(values.data(), values.size(), divisor, out);
#endif
  for (; i < values.size(); ++i) out[i] = half_from_float(values[i] / divisor);
}

void from_half(const std::uint16_t* values, std::span<float> out) {
  std::size_t i = 0;
#if defined(__x86_64__)
  if (has_f16c) i = from_half_by_8(values, out.data(), out.size());
#endif
  for (; i < out.size(); ++i) out[i] = float_from_half(values[i]);
}

void add_half(std::uint16_t* into, const std::uint16_t* from, std::size_t count) {
  std::size_t i = 0;
#if defined(__x86_64__)
  if (has_f16c) i = add_half_by_8(into, from, count);
#endif
  for (; i < count; ++i) into[i] = half_from_float(float_from_half(into[i]) + float_from_half(from[i]));
}

PACELINE_VECTORIZE void to_bfloat16(std::span<const float> values, float divisor, std::uint16_t* out) {
  const float* in = values.data();
  for (std::size_t i = 0, count = values.size(); i < count; ++i) out[i] = bfloat16_from_float(in[i] / divisor);
}

PACELINE_VECTORIZE void from_bfloat16(const std::uint16_t* values, std::span<float> out) {
  float* to = out.data();
  for (std::size_t i = 0, count = out.size(); i < count; ++i) to[i] = float_from_bfloat16(values[i]);
}

PACELINE_VECTORIZE void add_bfloat16(std::uint16_t* into, const std::uint16_t* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    into[i] = bfloat16_from_float(float_from_bfloat16(into[i]) + float_from_bfloat16(from[i]));
  }
}

}  // namespace paceline::train
