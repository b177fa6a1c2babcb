// SPDX-License-Identifier: Apache-2.0
// A network on a GPU, as a Model.
#pragma once

#include <memory>

#include "trainer/backend/cuda/runtime.h"
#include "trainer/nn/model.h"
#include "trainer/nn/network.h"
#include "trainer/optim/optimizer.h"

namespace paceline::train::cuda {

// Makes a model of this network; options.name is not used. The device must be the current one.
std::unique_ptr<Model> make_cuda_model(const Network& network, const ModelOptions& options, const Device& device);

// The optimizer's arrays are on the GPU. arrays() copies them to the host, and the next step copies changes back.
// Throws std::invalid_argument for an unknown name.
std::unique_ptr<Optimizer> make_cuda_optimizer(const OptimizerOptions& options,
                                               const std::vector<Parameter>& parameters, std::size_t elements);
std::unique_ptr<Optimizer> make_cuda_shard_optimizer(const OptimizerOptions& options,
                                                     const std::vector<Parameter>& parameters, std::size_t elements,
                                                     Slice shard);  // as make_shard_optimizer()

}  // namespace paceline::train::cuda
