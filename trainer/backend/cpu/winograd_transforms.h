// The transforms of Winograd's F(4×4, 3×3), on vectors of 8 channels. One-dimensional ones, each a product with one of
// the matrices Bᵀ (source), G (weights), Aᵀ (output), or with A or Gᵀ for gradients; both_ways() applies one to columns
// and rows.
//
// The polynomials are interpolated at 0, ±3/4, ±3/2 and ∞. Errors are less than half as large as with the usual points
// 0, ±1, ±2 and ∞, because the powers of these points are closer to each other. All factors except G's are exact in
// fp32. (Which points are good: Barabasz et al., "Error Analysis and Improving the Accuracy of Winograd Convolution for
// Deep Neural Networks", ACM TOMS 46, 2020, section 5.)
#pragma once

#include <immintrin.h>

#include <cstddef>

#define PACELINE_AVX2 __attribute__((target("avx2,fma")))
#define PACELINE_AVX2_INLINE __attribute__((target("avx2,fma"), always_inline)) inline

namespace paceline::train::winograd {

constexpr float a1 = 0.75f, a2 = a1 * a1, a3 = a1 * a2;  // powers of the inner points
constexpr float b1 = 1.5f, b2 = b1 * b1, b3 = b1 * b2;   // and of the outer ones
constexpr float at_zero = 1 / (a2 * b2), at_inner = 1 / (2 * a2 * (a2 - b2)), at_outer = 1 / (2 * b2 * (b2 - a2));

PACELINE_AVX2_INLINE __m256 times(float factor, __m256 x) { return _mm256_mul_ps(_mm256_set1_ps(factor), x); }
PACELINE_AVX2_INLINE __m256 plus(__m256 x, __m256 y) { return _mm256_add_ps(x, y); }
PACELINE_AVX2_INLINE __m256 minus(__m256 x, __m256 y) { return _mm256_sub_ps(x, y); }
// sum + factor × x
PACELINE_AVX2_INLINE __m256 plus(__m256 sum, float factor, __m256 x) {
  return _mm256_fmadd_ps(_mm256_set1_ps(factor), x, sum);
}

// Bᵀ: 6 pixels → 6.
struct SourceTransform {
  PACELINE_AVX2_INLINE void operator()(const __m256* d, __m256* o) const {
    o[0] = plus(plus(d[4], -(a2 + b2), d[2]), a2 * b2, d[0]);
    const __m256 inner = plus(d[4], -b2, d[2]), inner_odd = times(a1, plus(d[3], -b2, d[1]));
    o[1] = plus(inner, inner_odd);
    o[2] = minus(inner, inner_odd);
    const __m256 outer = plus(d[4], -a2, d[2]), outer_odd = times(b1, plus(d[3], -a2, d[1]));
    o[3] = plus(outer, outer_odd);
    o[4] = minus(outer, outer_odd);
    o[5] = plus(plus(d[5], -(a2 + b2), d[3]), a2 * b2, d[1]);
  }
};

// G: 3 taps → 6.
struct WeightsTransform {
  PACELINE_AVX2_INLINE void operator()(const __m256* g, __m256* o) const {
    o[0] = times(at_zero, g[0]);
    const __m256 inner = times(at_inner, plus(g[0], a2, g[2])), inner_odd = times(at_inner * a1, g[1]);
    o[1] = plus(inner, inner_odd);
    o[2] = minus(inner, inner_odd);
    const __m256 outer = times(at_outer, plus(g[0], b2, g[2])), outer_odd = times(at_outer * b1, g[1]);
    o[3] = plus(outer, outer_odd);
    o[4] = minus(outer, outer_odd);
    o[5] = g[2];
  }
};

// Aᵀ: 6 products → 4 pixels.
struct OutputTransform {
  PACELINE_AVX2_INLINE void operator()(const __m256* m, __m256* o) const {
    const __m256 inner = plus(m[1], m[2]), inner_odd = minus(m[1], m[2]);
    const __m256 outer = plus(m[3], m[4]), outer_odd = minus(m[3], m[4]);
    o[0] = plus(plus(m[0], inner), outer);
    o[1] = plus(times(b1, outer_odd), a1, inner_odd);
    o[2] = plus(times(b2, outer), a2, inner);
    o[3] = plus(plus(m[5], b3, outer_odd), a3, inner_odd);
  }
};

// A: the gradients of 4 pixels → 6.
struct GradientTransform {
  PACELINE_AVX2_INLINE void operator()(const __m256* y, __m256* o) const {
    o[0] = y[0];
    const __m256 inner = plus(y[0], a2, y[2]), inner_odd = plus(times(a1, y[1]), a3, y[3]);
    o[1] = plus(inner, inner_odd);
    o[2] = minus(inner, inner_odd);
    const __m256 outer = plus(y[0], b2, y[2]), outer_odd = plus(times(b1, y[1]), b3, y[3]);
    o[3] = plus(outer, outer_odd);
    o[4] = minus(outer, outer_odd);
    o[5] = y[3];
  }
};

// Gᵀ: 6 products → the gradients of 3 taps.
struct WeightsGradientTransform {
  PACELINE_AVX2_INLINE void operator()(const __m256* m, __m256* o) const {
    const __m256 inner = times(at_inner, plus(m[1], m[2])), outer = times(at_outer, plus(m[3], m[4]));
    o[0] = plus(plus(inner, outer), at_zero, m[0]);
    o[1] = plus(times(at_inner * a1, minus(m[1], m[2])), at_outer * b1, minus(m[3], m[4]));
    o[2] = plus(plus(m[5], b2, outer), a2, inner);
  }
};

constexpr SourceTransform source_transform{};
constexpr WeightsTransform weights_transform{};
constexpr OutputTransform output_transform{};
constexpr GradientTransform gradient_transform{};
constexpr WeightsGradientTransform weights_gradient_transform{};

// out = T in Tᵀ, with a transform T of From elements to To.
template <int From, int To, class Transform>
PACELINE_AVX2_INLINE void both_ways(Transform transform, const __m256 (&in)[From][From], __m256 (&out)[To][To]) {
  __m256 half[From][To];  // half[c][r]: column c of T in
  for (int c = 0; c < From; ++c) {
    __m256 column[From];
    for (int r = 0; r < From; ++r) column[r] = in[r][c];
    transform(column, half[c]);
  }
  for (int r = 0; r < To; ++r) {
    __m256 row[From];
    for (int c = 0; c < From; ++c) row[c] = half[c][r];
    transform(row, out[r]);
  }
}

// columns[j][i] = rows[8 i + j], i and j below 8.
PACELINE_AVX2_INLINE void transpose(const float* rows, __m256* columns) {
  __m256 pairs[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    const __m256 even = _mm256_loadu_ps(rows + 8 * i), odd = _mm256_loadu_ps(rows + 8 * i + 8);
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

}  // namespace paceline::train::winograd
