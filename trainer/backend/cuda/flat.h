// SPDX-License-Identifier: Apache-2.0
// Operations on the flat fp32 buffers of weights and gradients in GPU memory: the optimizers' steps, which read and
// write every number once. Asynchronous, in the stream; trainer/optim/ has the formulas.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace paceline::train::cuda::flat {

void add(cudaStream_t, const float* from, float* to, std::size_t count);  // to += from
void divide(cudaStream_t, float* values, std::size_t count, float divisor);

// sums[block] = Σ x² over the values that block number `block` of squares_blocks takes; the same for the same count.
constexpr unsigned squares_blocks = 512;
void sum_squares(cudaStream_t, const float* values, std::size_t count, double* sums);

// Like Chunk of trainer/optim/optimizer.h; a block of threads takes one.
struct Chunk {
  std::uint64_t first;
  std::uint32_t count, parameter;
  float weight_decay;
  std::uint32_t excluded;
};

struct Arrays {
  const Chunk* chunks;  // in GPU memory
  std::uint32_t chunk_count;
  float* weights;
  const float* gradients;
  float *first, *second;  // the optimizer's arrays; second may be null
};

// v ← keep v + take g with g = gradient + decay w, then w ← w − (of_gradient g + of_velocity v).
struct Sgd {
  float keep, take, of_gradient, of_velocity;
};
void step(cudaStream_t, const Arrays&, const Sgd&);

// rate: η ÷ (1 − β₁ᵗ); deviation: 1 ÷ √(1 − β₂ᵗ).
struct Adam {
  float beta1, beta2, rate, deviation, epsilon;
};
void step(cudaStream_t, const Arrays&, const Adam&);

struct AdamW {
  Adam adam;
  float rate;  // η, of the decay
};
void step(cudaStream_t, const Arrays&, const AdamW&);

struct RmspropWarmup {
  float rate, momentum, rms_decay, epsilon, sgd, rms;
};
void step(cudaStream_t, const Arrays&, const RmspropWarmup&);

struct Lars {
  float momentum;
  double trust, threshold, rate;
  double* squares;           // scratch: 2 × chunk_count
  double* local;             // scratch: λ ÷ η of each parameter
  std::uint32_t parameters;  // how many
};
void step(cudaStream_t, const Arrays&, const Lars&);

}  // namespace paceline::train::cuda::flat
