// SPDX-License-Identifier: Apache-2.0
#include "trainer/updaters/low_rank.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace paceline::train {

void multiply(const MatrixShape& s, std::span<const float> m, std::span<const float> q, std::span<float> p) {
  for (std::size_t i = 0; i < s.rows; ++i) {
    float* const out = p.data() + i * s.rank;
    std::fill_n(out, s.rank, 0.0f);
    for (std::size_t j = 0; j < s.columns; ++j) {
      const float value = m[i * s.columns + j];
      const float* const row = q.data() + j * s.rank;
      for (std::size_t k = 0; k < s.rank; ++k) out[k] += value * row[k];
    }
  }
}

void multiply_transposed(const MatrixShape& s, std::span<const float> m, std::span<const float> p, std::span<float> q) {
  std::ranges::fill(q, 0.0f);
  for (std::size_t i = 0; i < s.rows; ++i) {
    const float* const row = p.data() + i * s.rank;
    for (std::size_t j = 0; j < s.columns; ++j) {
      const float value = m[i * s.columns + j];
      float* const out = q.data() + j * s.rank;
      for (std::size_t k = 0; k < s.rank; ++k) out[k] += value * row[k];
    }
  }
}

void expand(const MatrixShape& s, std::span<const float> p, std::span<const float> q, std::span<float> m) {
  for (std::size_t i = 0; i < s.rows; ++i) {
    for (std::size_t j = 0; j < s.columns; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < s.rank; ++k) sum += p[i * s.rank + k] * q[j * s.rank + k];
      m[i * s.columns + j] = sum;
    }
  }
}

std::vector<std::size_t> orthonormalise(const MatrixShape& s, std::span<float> p) {
  // A column that keeps less than this share of its length is a combination of the others but for the rounding of fp32.
  constexpr double dependent = 1e-6;
  std::vector<std::vector<double>> columns(s.rank, std::vector<double>(s.rows));
  std::vector<std::size_t> dropped;
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  for (std::size_t k = 0; k < s.rank; ++k) {
    std::vector<double>& column = columns[k];
    for (std::size_t i = 0; i < s.rows; ++i) column[i] = p[i * s.rank + k];
    const double before = std::sqrt(product(column, column));
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t other = 0; other < k; ++other) {
        const double along = product(columns[other], column);
        for (std::size_t i = 0; i < s.rows; ++i) column[i] -= along * columns[other][i];
      }
    }
    const double left = std::sqrt(product(column, column));
    const bool kept = left > dependent * before;
    if (!kept) dropped.push_back(k);
    for (double& value : column) value = kept ? value / left : 0;
    for (std::size_t i = 0; i < s.rows; ++i) p[i * s.rank + k] = static_cast<float>(column[i]);
  }
  return dropped;
}

// SplitMix64 and Box–Muller, as for initial weights.
void fill_normal(std::span<float> q, std::uint64_t seed) {
  const auto uniform = [seed](std::uint64_t i) {
    std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
  };
  for (std::size_t i = 0; i < q.size(); ++i) {
    const double radius = std::sqrt(-2 * std::log(uniform(2 * i)));
    q[i] = static_cast<float>(radius * std::cos(2 * std::numbers::pi * uniform(2 * i + 1)));
  }
}

}  // namespace paceline::train
