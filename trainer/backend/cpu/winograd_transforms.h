// SPDX-License-Identifier: Apache-2.0
// The transforms of Winograd's F(4×4, 3×3), on vectors of channels. winograd_code.h includes this file for each kind of
// vector, inside that code's namespace. Each transform has one dimension and is a product with one of the matrices Bᵀ
// (source), G (weights), Aᵀ (output), or with A or Gᵀ for gradients. both_ways() applies one to columns and rows.
//
// The polynomials are interpolated at 0, ±3/4, ±3/2 and ∞. Errors are less than half as large as with the usual points
// 0, ±1, ±2 and ∞, because the powers of these points are closer to each other. All factors except G's are exact in
// fp32. (Which points are good: Barabasz et al., "Error Analysis and Improving the Accuracy of Winograd Convolution for
// Deep Neural Networks", ACM TOMS 46, 2020, section 5.)
constexpr float a1 = 0.75f, a2 = a1 * a1, a3 = a1 * a2;  // powers of the inner points
constexpr float b1 = 1.5f, b2 = b1 * b1, b3 = b1 * b2;   // and of the outer ones
constexpr float at_zero = 1 / (a2 * b2), at_inner = 1 / (2 * a2 * (a2 - b2)), at_outer = 1 / (2 * b2 * (b2 - a2));

// Bᵀ: 6 pixels → 6.
struct SourceTransform {
  PACELINE_WINOGRAD_INLINE void operator()(const Vector* d, Vector* o) const {
    o[0] = plus(plus(d[4], -(a2 + b2), d[2]), a2 * b2, d[0]);
    const Vector inner = plus(d[4], -b2, d[2]), inner_odd = times(a1, plus(d[3], -b2, d[1]));
    o[1] = plus(inner, inner_odd);
    o[2] = minus(inner, inner_odd);
    const Vector outer = plus(d[4], -a2, d[2]), outer_odd = times(b1, plus(d[3], -a2, d[1]));
    o[3] = plus(outer, outer_odd);
    o[4] = minus(outer, outer_odd);
    o[5] = plus(plus(d[5], -(a2 + b2), d[3]), a2 * b2, d[1]);
  }
};

// G: 3 taps → 6.
struct WeightsTransform {
  PACELINE_WINOGRAD_INLINE void operator()(const Vector* g, Vector* o) const {
    o[0] = times(at_zero, g[0]);
    const Vector inner = times(at_inner, plus(g[0], a2, g[2])), inner_odd = times(at_inner * a1, g[1]);
    o[1] = plus(inner, inner_odd);
    o[2] = minus(inner, inner_odd);
    const Vector outer = times(at_outer, plus(g[0], b2, g[2])), outer_odd = times(at_outer * b1, g[1]);
    o[3] = plus(outer, outer_odd);
    o[4] = minus(outer, outer_odd);
    o[5] = g[2];
  }
};

// Aᵀ: 6 products → 4 pixels.
struct OutputTransform {
  PACELINE_WINOGRAD_INLINE void operator()(const Vector* m, Vector* o) const {
    const Vector inner = plus(m[1], m[2]), inner_odd = minus(m[1], m[2]);
    const Vector outer = plus(m[3], m[4]), outer_odd = minus(m[3], m[4]);
    o[0] = plus(plus(m[0], inner), outer);
    o[1] = plus(times(b1, outer_odd), a1, inner_odd);
    o[2] = plus(times(b2, outer), a2, inner);
    o[3] = plus(plus(m[5], b3, outer_odd), a3, inner_odd);
  }
};

// A: the gradients of 4 pixels → 6.
struct GradientTransform {
  PACELINE_WINOGRAD_INLINE void operator()(const Vector* y, Vector* o) const {
    o[0] = y[0];
    const Vector inner = plus(y[0], a2, y[2]), inner_odd = plus(times(a1, y[1]), a3, y[3]);
    o[1] = plus(inner, inner_odd);
    o[2] = minus(inner, inner_odd);
    const Vector outer = plus(y[0], b2, y[2]), outer_odd = plus(times(b1, y[1]), b3, y[3]);
    o[3] = plus(outer, outer_odd);
    o[4] = minus(outer, outer_odd);
    o[5] = y[3];
  }
};

// Gᵀ: 6 products → the gradients of 3 taps.
struct WeightsGradientTransform {
  PACELINE_WINOGRAD_INLINE void operator()(const Vector* m, Vector* o) const {
    const Vector inner = times(at_inner, plus(m[1], m[2])), outer = times(at_outer, plus(m[3], m[4]));
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
PACELINE_WINOGRAD_INLINE void both_ways(Transform transform, const Vector (&in)[From][From], Vector (&out)[To][To]) {
  Vector half[From][To];  // half[c][r]: column c of T in
  for (int c = 0; c < From; ++c) {
    Vector column[From];
    for (int r = 0; r < From; ++r) column[r] = in[r][c];
    transform(column, half[c]);
  }
  for (int r = 0; r < To; ++r) {
    Vector row[From];
    for (int c = 0; c < From; ++c) row[c] = half[c][r];
    transform(row, out[r]);
  }
}
