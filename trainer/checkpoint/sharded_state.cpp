// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/sharded_state.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace paceline::train {
namespace sharded_state {
namespace {

class WholeState final : public Optimizer {
 public:
  WholeState(std::string name, std::size_t elements, std::size_t arrays, std::size_t scalars)
      : Optimizer({{.first = 0, .count = elements}}, arrays, scalars), name_(std::move(name)) {}
  std::string name() const override { return name_; }

 protected:
  void update(std::span<float>, std::span<const float>, float) override {
    throw std::logic_error("this state takes no steps");
  }

 private:
  const std::string name_;
};

// The shard of every rank. A collective call.
std::vector<Slice> shards_of_all(Collectives& ranks, const Optimizer& shard) {
  const std::array<std::uint64_t, 2> own = {shard.shard().first, shard.shard().count};
  std::vector<std::array<std::uint64_t, 2>> all(static_cast<std::size_t>(ranks.size()));
  ranks.allgather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)));
  std::vector<Slice> shards;
  for (const auto& [first, count] : all) shards.push_back({first, count});
  return shards;
}

}  // namespace
}  // namespace sharded_state

bool is_shard(const Optimizer& optimizer, std::size_t elements) { return optimizer.shard().count != elements; }

std::unique_ptr<Optimizer> whole_state_of(Optimizer& shard, std::size_t elements) {
  return std::make_unique<sharded_state::WholeState>(shard.name(), elements, shard.arrays().size(),
                                                     shard.scalars().size());
}

void gather_state(Collectives& ranks, Optimizer& shard, Optimizer* whole) {
  const std::vector<Slice> shards = sharded_state::shards_of_all(ranks, shard);
  std::vector<std::vector<float>>& arrays = shard.arrays();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (ranks.rank() != 0) {
      ranks.send(std::as_bytes(std::span(arrays[i])), 0);
      continue;
    }
    const std::span<float> all = whole->arrays()[i];
    std::ranges::copy(arrays[i], all.begin() + static_cast<std::ptrdiff_t>(shards[0].first));
    for (int rank = 1; rank < ranks.size(); ++rank) {
      const Slice from = shards[static_cast<std::size_t>(rank)];
      ranks.receive(std::as_writable_bytes(all.subspan(from.first, from.count)), rank);
    }
  }
  if (ranks.rank() == 0) whole->scalars() = shard.scalars();
}

void scatter_state(Collectives& ranks, Optimizer* whole, Optimizer& shard) {
  const std::vector<Slice> shards = sharded_state::shards_of_all(ranks, shard);
  std::vector<std::vector<float>>& arrays = shard.arrays();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (ranks.rank() != 0) {
      ranks.receive(std::as_writable_bytes(std::span(arrays[i])), 0);
      continue;
    }
    const std::span<const float> all = whole->arrays()[i];
    std::ranges::copy(all.subspan(shards[0].first, shards[0].count), arrays[i].begin());
    for (int rank = 1; rank < ranks.size(); ++rank) {
      const Slice to = shards[static_cast<std::size_t>(rank)];
      ranks.send(std::as_bytes(all.subspan(to.first, to.count)), rank);
    }
  }
  if (ranks.rank() == 0) shard.scalars() = whole->scalars();
}

}  // namespace paceline::train
