// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/rmsprop_warmup.h"

#include <cmath>

#include "trainer/core/vectorize.h"

namespace paceline::train {
namespace {

PACELINE_VECTORIZE void warmup_chunk(float* __restrict w, const float* __restrict gradient, float* __restrict m,
                                     float* __restrict delta, std::size_t count, float decay, WarmupFactors f) {
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gradient[i] + decay * w[i];
    m[i] = f.rms_decay * m[i] + (1 - f.rms_decay) * g * g;
    delta[i] = f.momentum * delta[i] - (f.sgd + f.rms / (std::sqrt(m[i]) + f.epsilon)) * g;
    w[i] += f.rate * delta[i];
  }
}

}  // namespace

double sgd_share(double epoch, double center, double period, bool printed_slope) {
  if (epoch < center) return 0.5 * std::exp(2 * (epoch - center) / period);
  if (epoch < center + period / 2) return 0.5 + (printed_slope ? 2 : 1) * (epoch - center) / period;
  return 1;
}

WarmupFactors warmup_factors(const RmspropWarmupOptions& options, double epoch, float rate) {
  const double sgd = sgd_share(epoch, options.center, options.period, options.printed_slope);
  const double rms = rate > 0 ? (1 - sgd) * options.rms_rate / rate : 0;  // with a rate of 0 the weights do not move
  return {rate,
          static_cast<float>(options.momentum),
          static_cast<float>(options.rms_decay),
          static_cast<float>(options.epsilon),
          static_cast<float>(sgd),
          static_cast<float>(rms)};
}

void RmspropWarmup::update(std::span<float> weights, std::span<const float> gradients, float rate) {
  const WarmupFactors f = warmup_factors(options_, epoch(), rate);
  float *const w = weights.data(), *const m = arrays_[0].data(), *const delta = arrays_[1].data();
  const float* const g = gradients.data();
  on_all_chunks([=](const Chunk& c, std::size_t) {
    warmup_chunk(w + c.first, g + c.first, m + c.first, delta + c.first, c.count, c.weight_decay, f);
  });
}

}  // namespace paceline::train
