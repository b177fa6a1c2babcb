// Element-wise work that oneDNN does not have, over dense arrays in any layout: padding of blocked layouts is zero and
// stays zero. All run on the calling thread's OpenMP team.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/nn/model.h"

namespace paceline::train::kernels {

// out = max(0, a + b).
void add_relu(const float* a, const float* b, float* out, std::size_t count);

// gradient = gradient where out > 0, else 0, where out is a ReLU's result.
void relu_backward(const float* out, float* gradient, std::size_t count);

// gradient = (gradient + other) where out > 0, else 0: a ReLU whose result was used twice.
void relu_backward(const float* out, const float* other, float* gradient, std::size_t count);

void relu(const float* in, float* out, std::size_t count);

void add_to(const float* other, float* sum, std::size_t count);  // sum += other

bool all_finite(const float* values, std::size_t count);

// Inverted dropout: out = in × mask, with mask 1 / (1 − drop) or 0 by a hash of (seed, element).
void dropout(const float* in, float* mask, float* out, std::size_t count, float drop, std::uint64_t seed);
void multiply(const float* factor, float* values, std::size_t count);  // values *= factor

// Moves running towards batch by momentum; batch is scaled first (n / (n − 1) makes a variance unbiased).
void move_average(const float* batch, float* running, std::size_t count, float momentum, float scale);

// Softmax followed by cross-entropy of the first labels.size() rows. logits: rows × classes, plain.
Score cross_entropy(const float* logits, std::span<const std::int32_t> labels, std::int64_t classes);

// d(scale × Σ loss) / d logits.
void cross_entropy_backward(const float* logits, std::span<const std::int32_t> labels, std::int64_t classes,
                            float scale, float* gradient);

}  // namespace paceline::train::kernels
