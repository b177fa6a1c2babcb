// SPDX-License-Identifier: Apache-2.0
// `flat`, as in ChainerMN: pack, one MPI_Allreduce from that buffer to another, scale, unpack. Our gradients are packed
// already, but the two copies are kept, because they are the cost of this algorithm.
#include <cstring>
#include <vector>

#include "trainer/comm/algorithms.h"

namespace paceline::train {
namespace {

class Flat : public Allreduce {
 public:
  explicit Flat(const Ranks& ranks) : ranks_(ranks) {}

  void reduce(const Values& values) override {
    const std::size_t bytes = values.count * values.element.bytes();
    if (packed_.size() < bytes) {
      packed_.resize(bytes);
      sums_.resize(bytes);
    }
    std::memcpy(packed_.data(), values.data, bytes);
    MPI_Allreduce(packed_.data(), sums_.data(), static_cast<int>(values.count), values.element.type(),
                  values.element.sum(), ranks_.world);
    const Values sums{values.element, sums_.data(), values.count, values.divisor};
    sums.divide(sums.all());
    std::memcpy(values.data, sums_.data(), bytes);
  }

 private:
  const Ranks& ranks_;
  std::vector<std::byte> packed_, sums_;
};

}  // namespace

std::unique_ptr<Allreduce> make_flat(const Ranks& ranks) { return std::make_unique<Flat>(ranks); }

}  // namespace paceline::train
