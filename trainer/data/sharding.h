// Which samples a rank works on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/core/slice.h"

namespace paceline::train {

// A random order of the samples 0 … samples − 1, a function of seed and epoch alone: every rank computes the same
// without a word to the others. Fisher–Yates (Knuth, TAOCP 2, algorithm P); linear cost.
std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::size_t samples);

// Consecutive parts of 0 … samples − 1 that cover it exactly and differ in length by one at most.
Slice part_of(std::size_t samples, int rank, int ranks);

// How an epoch is cut into iterations: iteration i takes the order's next ranks × batch samples, rank r the r-th batch
// of these. So an iteration of 2 ranks with batch b sees the samples of 1 rank with batch 2b. All ranks take the same
// number of iterations and all gradients weigh the same. What is left at the end, less than one iteration's worth,
// other samples each epoch, is dropped, so that no sample comes twice (exact); or it is filled up from the order's
// beginning, so that none is left out (equal_length, as ChainerMN's scatter_dataset does with force_equal_length and
// PyTorch's DistributedSampler).
struct EpochPlan {
  std::size_t samples = 0, batch = 0;
  int rank = 0, ranks = 1;
  bool equal_length = false;

  std::size_t iterations() const {
    const std::size_t at_a_time = batch * static_cast<std::size_t>(ranks);
    return (samples + (equal_length ? at_a_time - 1 : 0)) / at_a_time;
  }

  // All samples of an epoch: epoch_order, filled up where the plan wants it.
  std::vector<std::uint32_t> order(std::uint64_t seed, std::uint64_t epoch) const;

  std::span<const std::uint32_t> batch_of(std::span<const std::uint32_t> order, std::size_t iteration) const {
    return order.subspan((iteration * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rank)) * batch, batch);
  }
};

}  // namespace paceline::train
