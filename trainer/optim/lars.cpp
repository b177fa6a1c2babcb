// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/lars.h"

#include <cmath>

#include "trainer/core/vectorize.h"

namespace paceline::train {
namespace {

double sum_of_squares(const float* values, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]) * values[i];
  return sum;
}

PACELINE_VECTORIZE void lars_chunk(float* __restrict w, const float* __restrict gradient, float* __restrict v,
                                   std::size_t count, float momentum, float decay, float rate) {
  for (std::size_t i = 0; i < count; ++i) {
    v[i] = momentum * v[i] + rate * (gradient[i] + decay * w[i]);
    w[i] -= v[i];
  }
}

}  // namespace

Lars::Lars(std::vector<Chunk> chunks, const LarsOptions& options)
    : Optimizer(std::move(chunks), 1, 0),
      options_(options),
      weight_squares_(this->chunks().size()),
      gradient_squares_(this->chunks().size()),
      local_(this->chunks().empty() ? 0 : this->chunks().back().parameter + 1, 1.0) {}

void Lars::update(std::span<float> weights, std::span<const float> gradients, float rate) {
  on_all_chunks([&](const Chunk& c, std::size_t i) {
    weight_squares_[i] = sum_of_squares(weights.data() + c.first, c.count);
    gradient_squares_[i] = sum_of_squares(gradients.data() + c.first, c.count);
  });
  for (std::size_t i = 0; i < chunks().size();) {  // in the order of the chunks, for any number of threads
    const Chunk first = chunks()[i];
    double w = 0, g = 0;
    for (; i < chunks().size() && chunks()[i].parameter == first.parameter; ++i) {
      w += weight_squares_[i];
      g += gradient_squares_[i];
    }
    w = std::sqrt(w);
    const double local = w / (std::sqrt(g) + first.weight_decay * w + 1e-9);
    local_[first.parameter] = !first.excluded && w > options_.threshold ? local : 1;
  }
  on_all_chunks([&](const Chunk& c, std::size_t) {
    const double factor = c.excluded ? 1 : options_.trust * local_[c.parameter];
    lars_chunk(weights.data() + c.first, gradients.data() + c.first, arrays_[0].data() + c.first, c.count,
               options_.momentum, c.weight_decay, static_cast<float>(rate * factor));
  });
}

}  // namespace paceline::train
