// SPDX-License-Identifier: Apache-2.0
// Element-wise operations that oneDNN does not have, on dense arrays in any layout. The padding of blocked layouts is
// zero and stays zero. All run on the calling thread's OpenMP team. T: float or Bf16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/backend/cpu/bfloat16.h"
#include "trainer/nn/model.h"

namespace paceline::train::kernels {

// out = max(0, a + b).
template <class T>
void add_relu(const T* a, const T* b, T* out, std::size_t count);

// gradient = gradient where out > 0, else 0, where out is a ReLU's result.
template <class T>
void relu_backward(const T* out, T* gradient, std::size_t count);

// gradient = (gradient + other) where out > 0, else 0: a ReLU whose result was used twice.
template <class T>
void relu_backward(const T* out, const T* other, T* gradient, std::size_t count);

template <class T>
void relu(const T* in, T* out, std::size_t count);

template <class T>
void add_to(const T* other, T* sum, std::size_t count);  // sum += other

template <class T>
bool all_finite(const T* values, std::size_t count);

// Inverted dropout: out = in × mask, with mask 1 / (1 − drop) or 0 by a hash of (seed, element).
template <class T>
void dropout(const T* in, float* mask, T* out, std::size_t count, float drop, std::uint64_t seed);
template <class T>
void multiply(const float* factor, T* values, std::size_t count);  // values *= factor

// Moves running towards batch by momentum; batch is scaled first (n / (n − 1) makes a variance unbiased).
void move_average(const float* batch, float* running, std::size_t count, float momentum, float scale);

// Softmax followed by cross-entropy of the first labels.size() rows. logits: rows × classes, plain.
// smoothing: the share of each label that is spread evenly over all classes.
Score cross_entropy(const float* logits, std::span<const std::int32_t> labels, std::int64_t classes,
                    double smoothing = 0);

// d(scale × Σ loss) / d logits.
void cross_entropy_backward(const float* logits, std::span<const std::int32_t> labels, std::int64_t classes,
                            float scale, float* gradient, double smoothing = 0);

}  // namespace paceline::train::kernels
