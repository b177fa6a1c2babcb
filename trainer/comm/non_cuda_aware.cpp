// SPDX-License-Identifier: Apache-2.0
// `non_cuda_aware`, as in ChainerMN: hierarchical for an MPI library that cannot read GPU memory, so that every message
// between hosts goes through a staging buffer on the host. Here the values are in host memory already. Copies replace
// those of the GPU, which makes the cost of staging visible on CPUs.
#include <algorithm>
#include <cstring>
#include <vector>

#include "trainer/comm/algorithms.h"
#include "trainer/comm/slice_exchange.h"

namespace paceline::train {
namespace {

class NonCudaAware : public Allreduce {
 public:
  explicit NonCudaAware(const Ranks& ranks) : ranks_(ranks) {}

  void reduce(const Values& values) override {
    const bool leader = ranks_.local_rank == 0;
    const auto count = static_cast<int>(values.count);
    MPI_Reduce(leader ? MPI_IN_PLACE : values.data, leader ? values.data : nullptr, count, values.element.type(),
               values.element.sum(), 0, ranks_.host);
    if (leader) exchange(values);
    MPI_Bcast(values.data, count, values.element.type(), 0, ranks_.host);
  }

 private:
  void exchange(const Values& values) {
    int rank = 0, size = 1;
    MPI_Comm_rank(ranks_.peers, &rank);
    MPI_Comm_size(ranks_.peers, &size);
    if (size == 1) return values.divide(values.all());
    const std::size_t width = values.element.bytes();
    const SliceTable slices(values.count, size);
    const Slice own = slice_of(values.count, static_cast<std::size_t>(size), static_cast<std::size_t>(rank));
    const SliceTable copies(own.count * static_cast<std::size_t>(size), size);  // `size` times own.count
    const std::size_t bytes = std::max(values.count, own.count * static_cast<std::size_t>(size)) * width;
    if (out_.size() < bytes) {
      out_.resize(bytes);
      in_.resize(bytes);
      device_.resize(bytes);
    }
    const MPI_Datatype type = values.element.type();
    std::memcpy(out_.data(), values.data, values.count * width);  // device to host
    MPI_Alltoallv(out_.data(), slices.counts.data(), slices.firsts.data(), type, in_.data(), copies.counts.data(),
                  copies.firsts.data(), type, ranks_.peers);
    std::memcpy(device_.data(), in_.data(), own.count * static_cast<std::size_t>(size) * width);  // host to device
    const Values sums{values.element, device_.data(), own.count, values.divisor};
    for (int from = 1; from < size; ++from) {
      sums.add(sums.all(), device_.data() + own.count * static_cast<std::size_t>(from) * width);
    }
    sums.divide(sums.all());
    std::memcpy(out_.data(), device_.data(), own.count * width);  // device to host
    MPI_Allgatherv(out_.data(), static_cast<int>(own.count), type, in_.data(), slices.counts.data(),
                   slices.firsts.data(), type, ranks_.peers);
    std::memcpy(values.data, in_.data(), values.count * width);  // host to device
  }

  const Ranks& ranks_;
  std::vector<std::byte> out_, in_, device_;
};

}  // namespace

std::unique_ptr<Allreduce> make_non_cuda_aware(const Ranks& ranks) { return std::make_unique<NonCudaAware>(ranks); }

}  // namespace paceline::train
