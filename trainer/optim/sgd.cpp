#include "trainer/optim/sgd.h"

#include <algorithm>
#include <stdexcept>

#include "trainer/nn/vectorize.h"

namespace paceline::train {
namespace {

PACELINE_VECTORIZE void step_chunk(float* __restrict w, const float* __restrict gradient, float* __restrict v,
                                   std::size_t count, float rate, float momentum, float decay) {
  for (std::size_t i = 0; i < count; ++i) {
    v[i] = momentum * v[i] + (gradient[i] + decay * w[i]);
    w[i] -= rate * v[i];
  }
}

PACELINE_VECTORIZE void nesterov_chunk(float* __restrict w, const float* __restrict gradient, float* __restrict v,
                                       std::size_t count, float rate, float momentum, float decay) {
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gradient[i] + decay * w[i];
    v[i] = momentum * v[i] + g;
    w[i] -= rate * (g + momentum * v[i]);
  }
}

}  // namespace

void Sgd::step(std::span<float> weights, std::span<const float> gradients, float rate) {
  if (weights.size() != velocity_.size() || gradients.size() != velocity_.size()) {
    throw std::invalid_argument("weights, gradients and velocity differ in size");
  }
  constexpr std::size_t chunk = 16384;
  const auto chunks = static_cast<std::ptrdiff_t>((weights.size() + chunk - 1) / chunk);
  const auto step = options_.nesterov ? nesterov_chunk : step_chunk;
#pragma omp parallel for schedule(static) if (chunks > 1)
  for (std::ptrdiff_t i = 0; i < chunks; ++i) {
    const std::size_t first = static_cast<std::size_t>(i) * chunk;
    step(weights.data() + first, gradients.data() + first, velocity_.data() + first,
         std::min(chunk, weights.size() - first), rate, options_.momentum, options_.weight_decay);
  }
}

}  // namespace paceline::train
