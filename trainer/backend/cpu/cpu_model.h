// SPDX-License-Identifier: Apache-2.0
// A network on the CPU. make_cpu_model() builds the published ones; tests build others.
#pragma once

#include <memory>

#include "trainer/nn/model.h"
#include "trainer/nn/network.h"
#include "trainer/nn/stage_model.h"

namespace paceline::train {

// Uses batch_size, seed, winograd, dtype, memory_limit, freeze_batch_norm and batch_norm of the options; the rest is in
// the network.
std::unique_ptr<Model> make_cpu_model(const Network& network, const ModelOptions& options);

// The same for a part of a network. shares: a model of the same part with the same options, whose weights, gradients
// and statistics the new model uses instead of its own, and which must outlive it; null: none. Models that share
// weights hold the activations of different microbatches.
std::unique_ptr<StageModel> make_cpu_stage(const Network& part, const ModelOptions& options,
                                           StageModel* shares = nullptr);

}  // namespace paceline::train
