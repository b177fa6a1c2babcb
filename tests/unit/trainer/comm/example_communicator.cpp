// SPDX-License-Identifier: Apache-2.0
// `gather`: rank 0 receives the values of all ranks, adds them up in the order of the ranks, and broadcasts the result.
#include <vector>

#include "trainer/comm/algorithms.h"

namespace paceline::train {
namespace {

class Gather : public Allreduce {
 public:
  explicit Gather(const Ranks& ranks) : ranks_(ranks) {}

  void reduce(const Values& values) override {
    const auto count = static_cast<int>(values.count);
    const MPI_Datatype type = values.element.type();
    const bool root = ranks_.rank == 0;
    const std::size_t bytes = values.count * values.element.bytes();
    copies_.resize(root ? bytes * static_cast<std::size_t>(ranks_.size) : 0);
    MPI_Gather(values.data, count, type, copies_.data(), count, type, 0, ranks_.world);
    if (root) {
      for (int rank = 1; rank < ranks_.size; ++rank) {
        values.add(values.all(), copies_.data() + bytes * static_cast<std::size_t>(rank));
      }
      values.divide(values.all());
    }
    MPI_Bcast(values.data, count, type, 0, ranks_.world);
  }

 private:
  const Ranks& ranks_;
  std::vector<std::byte> copies_;
};

}  // namespace

std::unique_ptr<Allreduce> make_gather(const Ranks& ranks) { return std::make_unique<Gather>(ranks); }

}  // namespace paceline::train
