// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cpu/kernels.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "trainer/core/random.h"
#include "trainer/core/vectorize.h"

namespace paceline::train::kernels {
namespace {

constexpr std::size_t chunk =
    16384;  // elements that one thread takes at a time: 64 KiB, about the size of a first-level cache

// Calls body(first, count) over [0, count) in chunks, on all threads.
template <class Body>
void in_chunks(std::size_t count, Body body) {
  const auto chunks = static_cast<std::ptrdiff_t>((count + chunk - 1) / chunk);
#pragma omp parallel for schedule(static) if (chunks > 1)
  for (std::ptrdiff_t i = 0; i < chunks; ++i) {
    const std::size_t first = static_cast<std::size_t>(i) * chunk;
    body(first, std::min(chunk, count - first));
  }
}

// Each loop is written once for both types, and compiled for several instruction sets in the functions below.
#define PACELINE_LOOP \
  template <class T>  \
  [[gnu::always_inline]] inline void

// A ReLU passes NaN on, because a finite loss would hide it.
PACELINE_LOOP add_relu_loop(const T* __restrict a, const T* __restrict b, T* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float sum = load(a[i]) + load(b[i]);
    store(sum <= 0 ? 0 : sum, out[i]);
  }
}

PACELINE_LOOP relu_loop(const T* __restrict in, T* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = zero_unless(!(load(in[i]) <= 0), in[i]);
}

PACELINE_LOOP relu_backward_loop(const T* __restrict out, T* __restrict gradient, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) gradient[i] = zero_unless(load(out[i]) > 0, gradient[i]);
}

PACELINE_LOOP relu_backward_two_loop(const T* __restrict out, const T* __restrict other, T* __restrict gradient,
                                     std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T sum;
    store(load(gradient[i]) + load(other[i]), sum);
    gradient[i] = zero_unless(load(out[i]) > 0, sum);
  }
}

PACELINE_LOOP add_to_loop(const T* __restrict other, T* __restrict sum, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) store(load(sum[i]) + load(other[i]), sum[i]);
}

PACELINE_LOOP multiply_loop(const float* __restrict factor, T* __restrict values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) store(load(values[i]) * factor[i], values[i]);
}
#undef PACELINE_LOOP

#define PACELINE_CHUNKS(T)                                                                                      \
  PACELINE_VECTORIZE void add_relu_chunk(const T* __restrict a, const T* __restrict b, T* __restrict out,       \
                                         std::size_t n) {                                                       \
    add_relu_loop(a, b, out, n);                                                                                \
  }                                                                                                             \
  PACELINE_VECTORIZE void relu_chunk(const T* __restrict in, T* __restrict out, std::size_t n) {                \
    relu_loop(in, out, n);                                                                                      \
  }                                                                                                             \
  PACELINE_VECTORIZE void relu_backward_chunk(const T* __restrict out, T* __restrict gradient, std::size_t n) { \
    relu_backward_loop(out, gradient, n);                                                                       \
  }                                                                                                             \
  PACELINE_VECTORIZE void relu_backward_two_chunk(const T* __restrict out, const T* __restrict other,           \
                                                  T* __restrict gradient, std::size_t n) {                      \
    relu_backward_two_loop(out, other, gradient, n);                                                            \
  }                                                                                                             \
  PACELINE_VECTORIZE void add_to_chunk(const T* __restrict other, T* __restrict sum, std::size_t n) {           \
    add_to_loop(other, sum, n);                                                                                 \
  }                                                                                                             \
  PACELINE_VECTORIZE void multiply_chunk(const float* __restrict factor, T* __restrict values, std::size_t n) { \
    multiply_loop(factor, values, n);                                                                           \
  }
PACELINE_CHUNKS(float)
PACELINE_CHUNKS(Bf16)
#undef PACELINE_CHUNKS

}  // namespace

template <class T>
void add_relu(const T* a, const T* b, T* out, std::size_t count) {
  in_chunks(count, [=](std::size_t i, std::size_t n) { add_relu_chunk(a + i, b + i, out + i, n); });
}

template <class T>
void relu(const T* in, T* out, std::size_t count) {
  in_chunks(count, [=](std::size_t i, std::size_t n) { relu_chunk(in + i, out + i, n); });
}

template <class T>
void relu_backward(const T* out, T* gradient, std::size_t count) {
  in_chunks(count, [=](std::size_t i, std::size_t n) { relu_backward_chunk(out + i, gradient + i, n); });
}

template <class T>
void relu_backward(const T* out, const T* other, T* gradient, std::size_t count) {
  in_chunks(count, [=](std::size_t i, std::size_t n) { relu_backward_two_chunk(out + i, other + i, gradient + i, n); });
}

template <class T>
void add_to(const T* other, T* sum, std::size_t count) {
  in_chunks(count, [=](std::size_t i, std::size_t n) { add_to_chunk(other + i, sum + i, n); });
}

template <class T>
bool all_finite(const T* values, std::size_t count) {
  return std::all_of(values, values + count, [](T value) { return std::isfinite(load(value)); });
}

template <class T>
void dropout(const T* in, float* mask, T* out, std::size_t count, float drop, std::uint64_t seed) {
  const float keep = 1 / (1 - drop);
  in_chunks(count, [=](std::size_t first, std::size_t n) {
    for (std::size_t i = first; i < first + n; ++i) {
      mask[i] = static_cast<float>(split_mix(seed, i) >> 40) * 0x1p-24f < drop ? 0 : keep;
      store(load(in[i]) * mask[i], out[i]);
    }
  });
}

template <class T>
void multiply(const float* factor, T* values, std::size_t count) {
  in_chunks(count, [=](std::size_t i, std::size_t n) { multiply_chunk(factor + i, values + i, n); });
}

#define PACELINE_INSTANTIATE(T)                                                   \
  template void add_relu(const T*, const T*, T*, std::size_t);                    \
  template void relu(const T*, T*, std::size_t);                                  \
  template void relu_backward(const T*, T*, std::size_t);                         \
  template void relu_backward(const T*, const T*, T*, std::size_t);               \
  template void add_to(const T*, T*, std::size_t);                                \
  template bool all_finite(const T*, std::size_t);                                \
  template void dropout(const T*, float*, T*, std::size_t, float, std::uint64_t); \
  template void multiply(const float*, T*, std::size_t);
PACELINE_INSTANTIATE(float)
PACELINE_INSTANTIATE(Bf16)
#undef PACELINE_INSTANTIATE

void move_average(const float* batch, float* running, std::size_t count, float momentum, float scale) {
  for (std::size_t i = 0; i < count; ++i) running[i] += momentum * (scale * batch[i] - running[i]);
}

Score cross_entropy(const float* logits, std::span<const std::int32_t> labels, std::int64_t classes, double smoothing) {
  Score score;
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    const std::int32_t label = labels[sample];
    if (label < 0 || label >= classes) {
      throw std::invalid_argument("label " + std::to_string(label) + " of sample " + std::to_string(sample) +
                                  " is outside the " + std::to_string(classes) + " classes");
    }
    const float* row = logits + static_cast<std::int64_t>(sample) * classes;
    const float* top = std::max_element(row, row + classes);
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(row[c]) - *top);
    score.loss_sum += std::log(sum) + *top - row[label];
    if (smoothing > 0) {  // (1 − ε) × the label's logit + ε × the mean of all logits, instead of the label's logit
      const double mean = std::accumulate(row, row + classes, 0.0) / static_cast<double>(classes);
      score.loss_sum += smoothing * (row[label] - mean);
    }
    score.correct += top - row == label;
    score.in_top_5 += std::count_if(row, row + classes, [&](float logit) { return logit > row[label]; }) < 5;
  }
  score.samples = static_cast<std::int64_t>(labels.size());
  return score;
}

void cross_entropy_backward(const float* logits, std::span<const std::int32_t> labels, std::int64_t classes,
                            float scale, float* gradient, double smoothing) {
  const double of_each = smoothing / static_cast<double>(classes);
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    const float* row = logits + static_cast<std::int64_t>(sample) * classes;
    float* out = gradient + static_cast<std::int64_t>(sample) * classes;
    const float top = *std::max_element(row, row + classes);
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(row[c]) - top);
    for (std::int64_t c = 0; c < classes; ++c) {
      const double probability = std::exp(static_cast<double>(row[c]) - top) / sum;
      out[c] = static_cast<float>(scale * (probability - of_each - (c == labels[sample] ? 1 - smoothing : 0)));
    }
  }
}

}  // namespace paceline::train::kernels
