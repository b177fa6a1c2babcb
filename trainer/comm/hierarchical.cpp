// SPDX-License-Identifier: Apache-2.0
// `hierarchical`, ChainerMN's default: sum on the first rank of each host, sum of slices among these ranks, broadcast
// in each host.
#include "trainer/comm/algorithms.h"
#include "trainer/comm/slice_exchange.h"

namespace paceline::train {
namespace {

class Hierarchical : public Allreduce {
 public:
  explicit Hierarchical(const Ranks& ranks) : ranks_(ranks) {}

  void reduce(const Values& values) override {
    const bool leader = ranks_.local_rank == 0;
    const auto count = static_cast<int>(values.count);
    MPI_Reduce(leader ? MPI_IN_PLACE : values.data, leader ? values.data : nullptr, count, values.element.type(),
               values.element.sum(), 0, ranks_.host);
    if (leader) exchange_.reduce(ranks_.peers, values);
    MPI_Bcast(values.data, count, values.element.type(), 0, ranks_.host);
  }

 private:
  const Ranks& ranks_;
  SliceExchange exchange_;
};

}  // namespace

std::unique_ptr<Allreduce> make_hierarchical(const Ranks& ranks) { return std::make_unique<Hierarchical>(ranks); }

}  // namespace paceline::train
