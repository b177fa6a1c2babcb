// A network on the CPU. make_cpu_model() builds the published ones; tests build others.
#pragma once

#include <memory>

#include "trainer/nn/model.h"
#include "trainer/nn/network.h"

namespace paceline::train {

// Uses batch_size, seed, winograd, dtype, memory_limit, freeze_batch_norm and batch_norm of the options; the rest is in
// the network.
std::unique_ptr<Model> make_cpu_model(const Network& network, const ModelOptions& options);

}  // namespace paceline::train
