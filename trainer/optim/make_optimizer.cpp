// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/make_optimizer.h"

#include <stdexcept>

#include "trainer/optim/adam.h"
#include "trainer/optim/lars.h"
#include "trainer/optim/rmsprop_warmup.h"
#include "trainer/optim/sgd.h"

namespace paceline::train {
namespace {

std::unique_ptr<Optimizer> optimizer_for_chunks(const OptimizerOptions& o, const std::vector<Chunk>& chunks) {
  const auto momentum = static_cast<float>(o.momentum);
  if (o.name == "sgd") {
    return std::make_unique<Sgd>(
        chunks, SgdOptions{momentum, o.weight_decay.rate, o.nesterov, rate_position_of(o.rate_position)});
  }
  if (o.name == "lars") return std::make_unique<Lars>(chunks, LarsOptions{momentum, o.trust, o.lars_threshold});
  if (o.name == "adam" || o.name == "adamw") {
    return std::make_unique<Adam>(chunks, AdamOptions{o.beta1, o.beta2, o.epsilon, o.name == "adamw"});
  }
  if (o.name == "rmsprop_warmup") {
    return std::make_unique<RmspropWarmup>(
        chunks, RmspropWarmupOptions{o.momentum, o.rms_decay, o.epsilon, o.rms_rate, o.rms_center, o.rms_period,
                                     o.rms_printed_slope});
  }
  throw std::invalid_argument("unknown optimizer '" + o.name + "'");
}

}  // namespace

std::vector<std::string> optimizer_names() { return {"sgd", "lars", "adam", "adamw", "rmsprop_warmup"}; }

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& o, const std::vector<Parameter>& parameters,
                                          std::size_t elements) {
  return optimizer_for_chunks(o, chunks_of(parameters, elements, o.weight_decay, o.frozen));
}

std::unique_ptr<Optimizer> make_shard_optimizer(const OptimizerOptions& o, const std::vector<Parameter>& parameters,
                                                std::size_t elements, Slice shard) {
  if (o.name == "lars") throw std::invalid_argument("lars needs whole parameters");
  auto optimizer =
      optimizer_for_chunks(o, chunks_within(chunks_of(parameters, elements, o.weight_decay, o.frozen), shard));
  optimizer->set_first(shard.first);
  return optimizer;
}

}  // namespace paceline::train
