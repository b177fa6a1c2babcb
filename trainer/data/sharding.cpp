// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/sharding.h"

#include <numeric>
#include <utility>

#include "trainer/core/random.h"

namespace paceline::train {

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::size_t samples) {
  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0u);
  Random random{shuffling, seed, epoch};
  for (std::size_t left = samples; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

std::vector<std::uint32_t> EpochPlan::order(std::uint64_t seed, std::uint64_t epoch) const {
  std::vector<std::uint32_t> order = epoch_order(seed, epoch, samples);
  const std::size_t wanted = iterations() * batch * static_cast<std::size_t>(ranks);
  for (std::size_t i = 0; order.size() < wanted; ++i) order.push_back(order[i]);
  return order;
}

Slice part_of(std::size_t samples, int rank, int ranks) {
  const auto start = [&](int r) { return samples * static_cast<std::size_t>(r) / static_cast<std::size_t>(ranks); };
  return {start(rank), start(rank + 1) - start(rank)};
}

}  // namespace paceline::train
