// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/sgd.h"

#include <stdexcept>

#include "trainer/core/vectorize.h"

namespace paceline::train {
namespace {

PACELINE_VECTORIZE void sgd_chunk(float* __restrict w, const float* __restrict gradient, float* __restrict v,
                                  std::size_t count, float decay, float keep, float take, float of_velocity) {
  for (std::size_t i = 0; i < count; ++i) {
    v[i] = keep * v[i] + take * (gradient[i] + decay * w[i]);
    w[i] -= of_velocity * v[i];
  }
}

PACELINE_VECTORIZE void nesterov_chunk(float* __restrict w, const float* __restrict gradient, float* __restrict v,
                                       std::size_t count, float decay, float keep, float take, float of_gradient,
                                       float of_velocity) {
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gradient[i] + decay * w[i];
    v[i] = keep * v[i] + take * g;
    w[i] -= of_gradient * g + of_velocity * v[i];
  }
}

}  // namespace

RatePosition rate_position_of(const std::string& name) {
  if (name == "after") return RatePosition::after;
  if (name == "inside") return RatePosition::inside;
  if (name == "corrected") return RatePosition::corrected;
  throw std::invalid_argument("unknown position of the rate: '" + name + "'");
}

// One scalar: the rate of the step before; 0 before the first.
Sgd::Sgd(std::vector<Chunk> chunks, const SgdOptions& options)
    : Optimizer(std::move(chunks), 1, 1), options_(options) {}

Sgd::Sgd(std::size_t elements, const SgdOptions& options)
    : Sgd(chunks_of({{"all", 0, elements, {}, false}}, elements, {options.weight_decay}), options) {}

SgdFactors sgd_factors(const SgdOptions& options, double rate_before, float rate) {
  const float m = options.momentum;
  SgdFactors f{m, 1, options.nesterov ? rate : 0, options.nesterov ? rate * m : rate};
  if (options.rate_position != RatePosition::after) {
    const auto before = static_cast<float>(rate_before);
    // After a rate of 0 there is nothing to correct, because that rate added nothing to v.
    if (options.rate_position == RatePosition::corrected && before > 0) f.keep = m * (rate / before);
    f.take = rate;
    f.of_velocity = options.nesterov ? m : 1;
  }
  return f;
}

void Sgd::update(std::span<float> weights, std::span<const float> gradients, float rate) {
  const SgdFactors f = sgd_factors(options_, scalars_[0], rate);
  scalars_[0] = rate;
  float *const w = weights.data(), *const v = arrays_[0].data();
  const float* const g = gradients.data();
  const bool nesterov = options_.nesterov;
  on_all_chunks([=](const Chunk& c, std::size_t) {
    if (nesterov) {
      nesterov_chunk(w + c.first, g + c.first, v + c.first, c.count, c.weight_decay, f.keep, f.take, f.of_gradient,
                     f.of_velocity);
    } else {
      sgd_chunk(w + c.first, g + c.first, v + c.first, c.count, c.weight_decay, f.keep, f.take, f.of_velocity);
    }
  });
}

}  // namespace paceline::train
