// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "trainer/backend/cuda/flat.h"
#include "trainer/backend/cuda/launch.cuh"

namespace paceline::train::cuda::flat {
namespace {

constexpr unsigned threads = 256;

__global__ void __launch_bounds__(threads) add_kernel(const float* from, float* to, std::size_t count) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * threads;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x; i < count; i += step)
    to[i] += from[i];
}

// Rounded once, as on the host.
__global__ void __launch_bounds__(threads) divide_kernel(float* values, std::size_t count, float divisor) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * threads;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x; i < count; i += step)
    values[i] = __fdiv_rn(values[i], divisor);
}

__global__ void __launch_bounds__(threads) sum_squares_kernel(const float* values, std::size_t count, double* results) {
  __shared__ double sums[threads];
  double sum = 0;
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * threads;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x; i < count; i += step) {
    const double value = values[i];
    sum += value * value;
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) results[blockIdx.x] = sums[0];
}

// rule(w, g, first[i], second) for every number of the block's chunk, g with the weight decay unless the rule decays
// the weights itself.
template <class Rule>
__global__ void __launch_bounds__(threads) step_kernel(Arrays a, Rule rule) {
  const Chunk chunk = a.chunks[blockIdx.x];
  const auto of_chunk = rule.of(chunk);
  for (std::uint32_t k = threadIdx.x; k < chunk.count; k += threads) {
    const std::size_t i = chunk.first + k;
    float w = a.weights[i], none = 0;
    const float g = Rule::decoupled ? a.gradients[i] : a.gradients[i] + chunk.weight_decay * w;
    of_chunk(w, g, a.first[i], a.second != nullptr ? a.second[i] : none);
    a.weights[i] = w;
  }
}

template <class Rule>
void run(cudaStream_t stream, const Arrays& arrays, Rule rule) {
  if (arrays.chunk_count == 0) return;
  launch(step_kernel<Rule>, arrays.chunk_count, threads, stream, arrays, rule);
}

struct SgdRule {
  static constexpr bool decoupled = false;
  Sgd f;
  __device__ SgdRule of(const Chunk&) const { return *this; }
  __device__ void operator()(float& w, float g, float& v, float&) const {
    v = f.keep * v + f.take * g;
    w -= f.of_gradient * g + f.of_velocity * v;
  }
};

struct AdamRule {
  static constexpr bool decoupled = false;
  Adam f;
  __device__ AdamRule of(const Chunk&) const { return *this; }
  __device__ void operator()(float& w, float g, float& m, float& v) const {
    m = f.beta1 * m + (1 - f.beta1) * g;
    v = f.beta2 * v + (1 - f.beta2) * g * g;
    w -= f.rate * m / (sqrtf(v) * f.deviation + f.epsilon);
  }
};

struct AdamWRule {
  static constexpr bool decoupled = true;
  AdamW f;
  struct Of {
    AdamRule adam;
    float keep;
    __device__ void operator()(float& w, float g, float& m, float& v) const {
      w *= keep;
      adam(w, g, m, v);
    }
  };
  __device__ Of of(const Chunk& chunk) const { return {{f.adam}, 1 - f.rate * chunk.weight_decay}; }
};

struct RmspropWarmupRule {
  static constexpr bool decoupled = false;
  RmspropWarmup f;
  __device__ RmspropWarmupRule of(const Chunk&) const { return *this; }
  __device__ void operator()(float& w, float g, float& m, float& delta) const {
    m = f.rms_decay * m + (1 - f.rms_decay) * g * g;
    delta = f.momentum * delta - (f.sgd + f.rms / (sqrtf(m) + f.epsilon)) * g;
    w += f.rate * delta;
  }
};

struct LarsRule {
  static constexpr bool decoupled = false;
  Lars f;
  struct Of {
    float momentum, rate;
    __device__ void operator()(float& w, float g, float& v, float&) const {
      v = momentum * v + rate * g;
      w -= v;
    }
  };
  __device__ Of of(const Chunk& chunk) const {
    const double factor = chunk.excluded ? 1 : f.trust * f.local[chunk.parameter];
    return {f.momentum, static_cast<float>(f.rate * factor)};
  }
};

// Σ w² and Σ gradient² of each chunk.
__global__ void __launch_bounds__(threads) squares_kernel(Arrays a, double* squares) {
  __shared__ double sums[threads][2];
  const Chunk chunk = a.chunks[blockIdx.x];
  double w2 = 0, g2 = 0;
  for (std::uint32_t k = threadIdx.x; k < chunk.count; k += threads) {
    const double w = a.weights[chunk.first + k], g = a.gradients[chunk.first + k];
    w2 += w * w;
    g2 += g * g;
  }
  sums[threadIdx.x][0] = w2;
  sums[threadIdx.x][1] = g2;
  __syncthreads();
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      sums[threadIdx.x][0] += sums[threadIdx.x + half][0];
      sums[threadIdx.x][1] += sums[threadIdx.x + half][1];
    }
    __syncthreads();
  }
  if (threadIdx.x < 2) squares[2 * blockIdx.x + threadIdx.x] = sums[0][threadIdx.x];
}

// A thread for each parameter, whose chunks stand one after another.
__global__ void local_rates_kernel(Arrays a, Lars f) {
  const std::uint32_t parameter = blockIdx.x * blockDim.x + threadIdx.x;
  if (parameter >= f.parameters) return;
  std::uint32_t first = 0, end = a.chunk_count;
  while (first < end) {  // the first chunk of this parameter or a later one
    const std::uint32_t middle = (first + end) / 2;
    if (a.chunks[middle].parameter < parameter)
      first = middle + 1;
    else
      end = middle;
  }
  double w = 0, g = 0;
  std::uint32_t i = first;
  for (; i < a.chunk_count && a.chunks[i].parameter == parameter; ++i) w += f.squares[2 * i], g += f.squares[2 * i + 1];
  f.local[parameter] = 1;
  if (i == first) return;  // no numbers
  w = sqrt(w);
  if (!a.chunks[first].excluded && w > f.threshold) {
    f.local[parameter] = w / (sqrt(g) + a.chunks[first].weight_decay * w + 1e-9);
  }
}

}  // namespace

void add(cudaStream_t stream, const float* from, float* to, std::size_t count) {
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>(std::min<std::size_t>((count + threads - 1) / threads, 8192));
  launch(add_kernel, blocks, threads, stream, from, to, count);
}

void divide(cudaStream_t stream, float* values, std::size_t count, float divisor) {
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>(std::min<std::size_t>((count + threads - 1) / threads, 8192));
  launch(divide_kernel, blocks, threads, stream, values, count, divisor);
}

void sum_squares(cudaStream_t stream, const float* values, std::size_t count, double* sums) {
  launch(sum_squares_kernel, squares_blocks, threads, stream, values, count, sums);
}

void step(cudaStream_t stream, const Arrays& arrays, const Sgd& factors) { run(stream, arrays, SgdRule{factors}); }
void step(cudaStream_t stream, const Arrays& arrays, const Adam& factors) { run(stream, arrays, AdamRule{factors}); }
void step(cudaStream_t stream, const Arrays& arrays, const AdamW& factors) { run(stream, arrays, AdamWRule{factors}); }
void step(cudaStream_t stream, const Arrays& arrays, const RmspropWarmup& factors) {
  run(stream, arrays, RmspropWarmupRule{factors});
}

void step(cudaStream_t stream, const Arrays& arrays, const Lars& factors) {
  if (arrays.chunk_count == 0) return;
  launch(squares_kernel, arrays.chunk_count, threads, stream, arrays, factors.squares);
  launch(local_rates_kernel, (factors.parameters + threads - 1) / threads, threads, stream, arrays, factors);
  run(stream, arrays, LarsRule{factors});
}

}  // namespace paceline::train::cuda::flat
