// SPDX-License-Identifier: Apache-2.0
// The vectors of Winograd's code. Every function exists for each kind of vector; the kind selects it.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstring>

#include "trainer/backend/cpu/bfloat16.h"

#define PACELINE_AVX2_INLINE __attribute__((target("avx2,fma"), always_inline)) inline
#define PACELINE_AVX512_INLINE __attribute__((target("avx512f"), always_inline)) inline
#define PACELINE_AVX512_BF16_INLINE __attribute__((target("avx512f,avx512bf16"), always_inline)) inline

namespace paceline::train::winograd {

// 16 channels for processors without AVX-512.
struct TwoVectors {
  __m256 low, high;
};

// to = the numbers from an address, or one number in all lanes.
PACELINE_AVX2_INLINE void load(__m256& to, const float* from) { to = _mm256_loadu_ps(from); }
PACELINE_AVX2_INLINE void fill(__m256& to, float value) { to = _mm256_set1_ps(value); }
PACELINE_AVX2_INLINE void store(float* to, __m256 x) { _mm256_storeu_ps(to, x); }
PACELINE_AVX2_INLINE __m256 times(float factor, __m256 x) { return _mm256_mul_ps(_mm256_set1_ps(factor), x); }
PACELINE_AVX2_INLINE __m256 plus(__m256 x, __m256 y) { return _mm256_add_ps(x, y); }
PACELINE_AVX2_INLINE __m256 minus(__m256 x, __m256 y) { return _mm256_sub_ps(x, y); }
// sum + factor × x
PACELINE_AVX2_INLINE __m256 plus(__m256 sum, __m256 factor, __m256 x) { return _mm256_fmadd_ps(factor, x, sum); }
PACELINE_AVX2_INLINE __m256 plus(__m256 sum, float factor, __m256 x) { return plus(sum, _mm256_set1_ps(factor), x); }

PACELINE_AVX2_INLINE void load(TwoVectors& to, const float* from) {
  to = {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
}
PACELINE_AVX2_INLINE void fill(TwoVectors& to, float value) { to = {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
PACELINE_AVX2_INLINE void store(float* to, const TwoVectors& x) {
  _mm256_storeu_ps(to, x.low);
  _mm256_storeu_ps(to + 8, x.high);
}
PACELINE_AVX2_INLINE void load(TwoVectors& to, const Bf16* from) {
  float values[16];
  for (int i = 0; i < 16; ++i) values[i] = train::load(from[i]);
  load(to, values);
}
PACELINE_AVX2_INLINE void store(Bf16* to, const TwoVectors& x) {
  float values[16];
  store(values, x);
  for (int i = 0; i < 16; ++i) train::store(values[i], to[i]);
}
PACELINE_AVX2_INLINE TwoVectors times(float factor, const TwoVectors& x) {
  return {times(factor, x.low), times(factor, x.high)};
}
PACELINE_AVX2_INLINE TwoVectors plus(const TwoVectors& x, const TwoVectors& y) {
  return {plus(x.low, y.low), plus(x.high, y.high)};
}
PACELINE_AVX2_INLINE TwoVectors minus(const TwoVectors& x, const TwoVectors& y) {
  return {minus(x.low, y.low), minus(x.high, y.high)};
}
PACELINE_AVX2_INLINE TwoVectors plus(const TwoVectors& sum, const TwoVectors& factor, const TwoVectors& x) {
  return {plus(sum.low, factor.low, x.low), plus(sum.high, factor.high, x.high)};
}
PACELINE_AVX2_INLINE TwoVectors plus(const TwoVectors& sum, float factor, const TwoVectors& x) {
  return {plus(sum.low, factor, x.low), plus(sum.high, factor, x.high)};
}

PACELINE_AVX512_INLINE void load(__m512& to, const float* from) { to = _mm512_loadu_ps(from); }
PACELINE_AVX512_INLINE void fill(__m512& to, float value) { to = _mm512_set1_ps(value); }
PACELINE_AVX512_INLINE void store(float* to, __m512 x) { _mm512_storeu_ps(to, x); }
PACELINE_AVX512_INLINE void load(__m512& to, const Bf16* from) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  constexpr __mmask16 all = 0xffff;  // GCC 12 warns of the functions without a mask
  to = _mm512_castsi512_ps(_mm512_maskz_slli_epi32(all, _mm512_maskz_cvtepu16_epi32(all, bits), 16));
}
// Rounds to nearest even.
PACELINE_AVX512_BF16_INLINE void store(Bf16* to, __m512 x) {
  const __m256bh rounded = _mm512_cvtneps_pbh(x);
  std::memcpy(to, &rounded, sizeof rounded);
}
PACELINE_AVX512_INLINE __m512 times(float factor, __m512 x) { return _mm512_mul_ps(_mm512_set1_ps(factor), x); }
PACELINE_AVX512_INLINE __m512 plus(__m512 x, __m512 y) { return _mm512_add_ps(x, y); }
PACELINE_AVX512_INLINE __m512 minus(__m512 x, __m512 y) { return _mm512_sub_ps(x, y); }
PACELINE_AVX512_INLINE __m512 plus(__m512 sum, __m512 factor, __m512 x) { return _mm512_fmadd_ps(factor, x, sum); }
PACELINE_AVX512_INLINE __m512 plus(__m512 sum, float factor, __m512 x) { return plus(sum, _mm512_set1_ps(factor), x); }

// columns[j][i] = rows[row × i + j], i and j below the number of lanes, which is also `row`, except within a larger
// matrix.
PACELINE_AVX2_INLINE void transpose(const float* rows, __m256* columns, std::size_t row = 8) {
  __m256 pairs[8], fours[8];
  for (std::size_t i = 0; i < 8; i += 2) {
    const __m256 even = _mm256_loadu_ps(rows + row * i), odd = _mm256_loadu_ps(rows + row * (i + 1));
    pairs[i] = _mm256_unpacklo_ps(even, odd);
    pairs[i + 1] = _mm256_unpackhi_ps(even, odd);
  }
  for (int i = 0; i < 8; i += 4) {
    fours[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    fours[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
    fours[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    fours[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    columns[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
    columns[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
  }
}

PACELINE_AVX2_INLINE void transpose(const float* rows, TwoVectors* columns) {
  __m256 quarter[8];
  for (std::size_t j = 0; j < 16; j += 8) {
    transpose(rows + j, quarter, 16);
    for (std::size_t i = 0; i < 8; ++i) columns[j + i].low = quarter[i];
    transpose(rows + 8 * 16 + j, quarter, 16);
    for (std::size_t i = 0; i < 8; ++i) columns[j + i].high = quarter[i];
  }
}

PACELINE_AVX512_INLINE void transpose(const float* rows, __m512* columns) {
  // A vector has four quarters of four numbers. fours[4 g + j], quarter q: column 4 q + j of rows 4 g … 4 g + 3.
  constexpr __mmask16 all = 0xffff;  // GCC 12 warns of the functions without a mask
  __m512 pairs[16], fours[16];
  for (std::size_t i = 0; i < 16; i += 2) {
    const __m512 even = _mm512_loadu_ps(rows + 16 * i), odd = _mm512_loadu_ps(rows + 16 * (i + 1));
    pairs[i] = _mm512_maskz_unpacklo_ps(all, even, odd);
    pairs[i + 1] = _mm512_maskz_unpackhi_ps(all, even, odd);
  }
  for (int i = 0; i < 16; i += 4) {
    fours[i] = _mm512_maskz_shuffle_ps(all, pairs[i], pairs[i + 2], 0x44);
    fours[i + 1] = _mm512_maskz_shuffle_ps(all, pairs[i], pairs[i + 2], 0xee);
    fours[i + 2] = _mm512_maskz_shuffle_ps(all, pairs[i + 1], pairs[i + 3], 0x44);
    fours[i + 3] = _mm512_maskz_shuffle_ps(all, pairs[i + 1], pairs[i + 3], 0xee);
  }
  for (int j = 0; j < 4; ++j) {  // transposes the quarters of four vectors
    const __m512 even_low = _mm512_maskz_shuffle_f32x4(all, fours[j], fours[4 + j], 0x88);
    const __m512 odd_low = _mm512_maskz_shuffle_f32x4(all, fours[j], fours[4 + j], 0xdd);
    const __m512 even_high = _mm512_maskz_shuffle_f32x4(all, fours[8 + j], fours[12 + j], 0x88);
    const __m512 odd_high = _mm512_maskz_shuffle_f32x4(all, fours[8 + j], fours[12 + j], 0xdd);
    columns[j] = _mm512_maskz_shuffle_f32x4(all, even_low, even_high, 0x88);
    columns[4 + j] = _mm512_maskz_shuffle_f32x4(all, odd_low, odd_high, 0x88);
    columns[8 + j] = _mm512_maskz_shuffle_f32x4(all, even_low, even_high, 0xdd);
    columns[12 + j] = _mm512_maskz_shuffle_f32x4(all, odd_low, odd_high, 0xdd);
  }
}

}  // namespace paceline::train::winograd
