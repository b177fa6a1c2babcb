// SPDX-License-Identifier: Apache-2.0
// The table of the optimizers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/optim/optimizer.h"

namespace paceline::train {

std::vector<std::string> optimizer_names();

// Throws std::invalid_argument for an unknown name.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, const std::vector<Parameter>& parameters,
                                          std::size_t elements);

// An optimizer for a part of the flat buffers. Not lars, whose rates need whole parameters: std::invalid_argument.
std::unique_ptr<Optimizer> make_shard_optimizer(const OptimizerOptions& options,
                                                const std::vector<Parameter>& parameters, std::size_t elements,
                                                Slice shard);

}  // namespace paceline::train
