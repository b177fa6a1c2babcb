// SPDX-License-Identifier: Apache-2.0
// Matrices of low rank for PowerSGD. All are stored by rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace paceline::train {

struct MatrixShape {
  std::size_t rows = 0, columns = 0, rank = 0;
};

// p (rows × rank) = m (rows × columns) × q (columns × rank)
void multiply(const MatrixShape& shape, std::span<const float> m, std::span<const float> q, std::span<float> p);

// q (columns × rank) = mᵀ × p
void multiply_transposed(const MatrixShape& shape, std::span<const float> m, std::span<const float> p,
                         std::span<float> q);

// m = p × qᵀ
void expand(const MatrixShape& shape, std::span<const float> p, std::span<const float> q, std::span<float> m);

// Makes the columns of p orthonormal, in their order, by Gram and Schmidt in float64, twice. A column that depends on
// those before it becomes 0. Returns the numbers of these columns.
std::vector<std::size_t> orthonormalise(const MatrixShape& shape, std::span<float> p);

// Standard normal numbers, the same for the same seed on every machine. Fills one column of q, or all columns.
void fill_normal(std::span<float> q, std::uint64_t seed);

}  // namespace paceline::train
