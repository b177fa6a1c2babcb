// A network on a GPU, behind the interface that the training loop knows.
#pragma once

#include <memory>

#include "trainer/backend/cuda/runtime.h"
#include "trainer/nn/model.h"
#include "trainer/nn/network.h"
#include "trainer/optim/optimizer.h"

namespace paceline::train::cuda {

// Of the network, not of options.name. The device must be the current one.
std::unique_ptr<Model> make_cuda_model(const Network& network, const ModelOptions& options, const Device& device);

// The optimizer's arrays lie on the GPU and come to the host when arrays() is called; what is changed there goes back
// with the next step. Throws std::invalid_argument for another name.
std::unique_ptr<Optimizer> make_cuda_optimizer(const OptimizerOptions& options,
                                               const std::vector<Parameter>& parameters, std::size_t elements);

}  // namespace paceline::train::cuda
