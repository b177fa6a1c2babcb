// SPDX-License-Identifier: Apache-2.0
// Gradients in GPU memory, averaged by one allreduce algorithm in a stream of its own, called `communication`.
#pragma once

#include <memory>

#include "trainer/comm/gpu/allreduce.h"
#include "trainer/comm/gpu/model_memory.h"
#include "trainer/comm/gradient_reduction.h"

namespace paceline::train::nccl {

// host: averages gradients that lie in host memory. ordered: the ranks of `allreduce` if they are in another order than
// the job's `ranks`, which is how many there are.
std::unique_ptr<GradientReduction> make_device_reduction(int ranks, std::unique_ptr<GradientReduction> host,
                                                         std::unique_ptr<Ranks> ordered,
                                                         std::unique_ptr<Allreduce> allreduce,
                                                         std::shared_ptr<ModelMemory> memory, const Options& options);

}  // namespace paceline::train::nccl
