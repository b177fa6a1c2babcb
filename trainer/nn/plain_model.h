// SPDX-License-Identifier: Apache-2.0
// The parameters and statistics of a whole network in the published layout, without anything that computes. Rank 0 of a
// pipeline uses it to read and write checkpoints and weights.
#pragma once

#include <memory>

#include "trainer/nn/model.h"
#include "trainer/nn/network.h"

namespace paceline::train {

// Statistics lie as in every backend: batch norm after batch norm, mean before variance, each from a multiple of 16
// numbers on. seed: of the initial weights. forward() and backward() throw std::logic_error.
std::unique_ptr<Model> make_plain_model(const Network& network, std::uint64_t seed);

// The length of those statistics; 0 without batch norms.
std::size_t statistics_of(const Network& network);

}  // namespace paceline::train
