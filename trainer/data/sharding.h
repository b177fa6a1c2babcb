// SPDX-License-Identifier: Apache-2.0
// The samples that each rank works on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/core/slice.h"

namespace paceline::train {

// A random order of the samples 0 … samples − 1, a function of seed and epoch alone, so that every rank computes the
// same order without communication. Fisher–Yates (Knuth, TAOCP 2, algorithm P); the cost is linear.
std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::size_t samples);

// Cuts 0 … samples − 1 into one part for each rank. The parts cover it exactly and differ in length by at most one.
Slice part_of(std::size_t samples, int rank, int ranks);

// Divides an epoch into iterations: iteration i takes the order's next ranks × batch samples, and rank r the r-th batch
// of these. So an iteration of 2 ranks with batch b has the samples of 1 rank with batch 2b. All ranks take the same
// number of iterations, and all gradients have the same weight. The samples that are left at the end do not fill an
// iteration. They are dropped, different ones in each epoch, so that no sample comes twice (exact); or they are filled
// up from the order's beginning, so that none is left out (equal_length, as ChainerMN's scatter_dataset with
// force_equal_length and PyTorch's DistributedSampler).
struct EpochPlan {
  std::size_t samples = 0, batch = 0;
  int rank = 0, ranks = 1;
  bool equal_length = false;

  std::size_t iterations() const {
    const std::size_t at_a_time = batch * static_cast<std::size_t>(ranks);
    return (samples + (equal_length ? at_a_time - 1 : 0)) / at_a_time;
  }

  // All samples of an epoch: epoch_order(), filled up with equal_length.
  std::vector<std::uint32_t> order(std::uint64_t seed, std::uint64_t epoch) const;

  std::span<const std::uint32_t> batch_of(std::span<const std::uint32_t> order, std::size_t iteration) const {
    return order.subspan((iteration * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rank)) * batch, batch);
  }
};

}  // namespace paceline::train
