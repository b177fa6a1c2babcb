// SPDX-License-Identifier: Apache-2.0
// `three_phase` (Goyal et al., 1706.02677, section 4): sum within each host, halving and doubling between the hosts'
// first ranks, broadcast within each host. Up to 256 KB the first phase copies everything to the first rank, which
// adds. Above that size it uses the library's reduction, which is faster then (NCCL's in the paper, MPI's here).
#include <vector>

#include "trainer/comm/algorithms.h"
#include "trainer/comm/halving_doubling.h"

namespace paceline::train {
namespace {

constexpr std::size_t longest_by_copy = std::size_t{256} << 10;  // bytes

class ThreePhase : public Allreduce {
 public:
  explicit ThreePhase(const Ranks& ranks) : ranks_(ranks), between_(make_halving_doubling_over(ranks.peers)) {}

  void reduce(const Values& values) override {
    const bool leader = ranks_.local_rank == 0;
    const auto count = static_cast<int>(values.count);
    if (values.count * values.element.bytes() <= longest_by_copy) {
      sum_by_copy(values);
    } else {
      MPI_Reduce(leader ? MPI_IN_PLACE : values.data, leader ? values.data : nullptr, count, values.element.type(),
                 values.element.sum(), 0, ranks_.host);
    }
    if (leader) between_->reduce(values);
    MPI_Bcast(values.data, count, values.element.type(), 0, ranks_.host);
  }

 private:
  void sum_by_copy(const Values& values) {
    const bool leader = ranks_.local_rank == 0;
    const auto count = static_cast<int>(values.count);
    const std::size_t bytes = values.count * values.element.bytes();
    if (leader) copies_.resize(bytes * static_cast<std::size_t>(ranks_.local_size));
    MPI_Gather(leader ? MPI_IN_PLACE : values.data, count, values.element.type(), copies_.data(), count,
               values.element.type(), 0, ranks_.host);
    if (!leader) return;
    // With MPI_IN_PLACE the leader's own part of the copies is not used.
    for (int from = 1; from < ranks_.local_size; ++from) {
      values.add(values.all(), copies_.data() + bytes * static_cast<std::size_t>(from));
    }
  }

  const Ranks& ranks_;
  std::unique_ptr<Allreduce> between_;
  std::vector<std::byte> copies_;
};

}  // namespace

std::unique_ptr<Allreduce> make_three_phase(const Ranks& ranks) { return std::make_unique<ThreePhase>(ranks); }

}  // namespace paceline::train
