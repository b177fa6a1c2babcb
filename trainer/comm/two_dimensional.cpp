// SPDX-License-Identifier: Apache-2.0
// `two_dimensional`, as in ChainerMN: reduce-scatter in each host, sum of each slice among the ranks of equal local
// rank, allgather in each host. So all ranks share the traffic between hosts. If hosts differ in size, there are as
// many slices as the smallest host has ranks.
#include <vector>

#include "trainer/comm/algorithms.h"
#include "trainer/comm/slice_exchange.h"

namespace paceline::train {
namespace {

class TwoDimensional : public Allreduce {
 public:
  explicit TwoDimensional(const Ranks& ranks) : ranks_(ranks) {}

  void reduce(const Values& values) override {
    SliceTable slices(values.count, ranks_.smallest_local_size);
    slices.counts.resize(static_cast<std::size_t>(ranks_.local_size));  // zero for the ranks beyond
    slices.firsts.resize(static_cast<std::size_t>(ranks_.local_size));
    const auto own = static_cast<std::size_t>(slices.counts[static_cast<std::size_t>(ranks_.local_rank)]);
    if (slice_.size() < own * values.element.bytes()) slice_.resize(own * values.element.bytes());

    MPI_Reduce_scatter(values.data, slice_.data(), slices.counts.data(), values.element.type(), values.element.sum(),
                       ranks_.host);
    if (ranks_.local_rank < ranks_.smallest_local_size) {
      exchange_.reduce(ranks_.peers, {values.element, slice_.data(), own, values.divisor});
    }
    MPI_Allgatherv(slice_.data(), static_cast<int>(own), values.element.type(), values.data, slices.counts.data(),
                   slices.firsts.data(), values.element.type(), ranks_.host);
  }

 private:
  const Ranks& ranks_;
  SliceExchange exchange_;
  std::vector<std::byte> slice_;
};

}  // namespace

std::unique_ptr<Allreduce> make_two_dimensional(const Ranks& ranks) { return std::make_unique<TwoDimensional>(ranks); }

}  // namespace paceline::train
