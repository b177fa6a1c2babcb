// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/adam.h"

#include <cmath>

#include "trainer/core/vectorize.h"

namespace paceline::train {
namespace {

PACELINE_VECTORIZE void adam_chunk(float* __restrict w, const float* __restrict gradient, float* __restrict m,
                                   float* __restrict v, std::size_t count, float decay, AdamFactors f) {
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gradient[i] + decay * w[i];
    m[i] = f.beta1 * m[i] + (1 - f.beta1) * g;
    v[i] = f.beta2 * v[i] + (1 - f.beta2) * g * g;
    w[i] -= f.rate * m[i] / (std::sqrt(v[i]) * f.deviation + f.epsilon);
  }
}

// keep: 1 − η λ.
PACELINE_VECTORIZE void adamw_chunk(float* __restrict w, const float* __restrict gradient, float* __restrict m,
                                    float* __restrict v, std::size_t count, float keep, AdamFactors f) {
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gradient[i];
    m[i] = f.beta1 * m[i] + (1 - f.beta1) * g;
    v[i] = f.beta2 * v[i] + (1 - f.beta2) * g * g;
    w[i] = keep * w[i] - f.rate * m[i] / (std::sqrt(v[i]) * f.deviation + f.epsilon);
  }
}

}  // namespace

AdamFactors adam_factors(const AdamOptions& options, double t, float rate) {
  return {static_cast<float>(options.beta1), static_cast<float>(options.beta2),
          static_cast<float>(rate / (1 - std::pow(options.beta1, t))),
          static_cast<float>(1 / std::sqrt(1 - std::pow(options.beta2, t))), static_cast<float>(options.epsilon)};
}

void Adam::update(std::span<float> weights, std::span<const float> gradients, float rate) {
  const AdamFactors f = adam_factors(options_, ++scalars_[0], rate);
  float *const w = weights.data(), *const m = arrays_[0].data(), *const v = arrays_[1].data();
  const float* const g = gradients.data();
  const bool decoupled = options_.decoupled;
  on_all_chunks([=](const Chunk& c, std::size_t) {
    if (decoupled) {
      return adamw_chunk(w + c.first, g + c.first, m + c.first, v + c.first, c.count, 1 - rate * c.weight_decay, f);
    }
    adam_chunk(w + c.first, g + c.first, m + c.first, v + c.first, c.count, c.weight_decay, f);
  });
}

}  // namespace paceline::train
