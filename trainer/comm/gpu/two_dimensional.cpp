// SPDX-License-Identifier: Apache-2.0
// `two_dimensional`, as in ChainerMN: NCCL's reduce-scatter in each host, sum of each slice among the ranks of equal
// local rank, NCCL's allgather in each host. NCCL's slices have equal lengths: if the number of values is not a
// multiple number of ranks on the host; number of this rank there's ranks, the values are copied to a longer buffer.
#include <fmt/format.h>

#include "trainer/comm/gpu/peers.h"
#include "trainer/core/error.h"

namespace paceline::train::nccl {
namespace {

class TwoDimensional : public Allreduce {
 public:
  TwoDimensional(const Ranks& ranks, const Options& options)
      : ranks_(static_cast<std::size_t>(ranks.local_size)), rank_(static_cast<std::size_t>(ranks.local_rank)) {
    const int largest = [&] {
      int most = ranks.local_size;
      MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, ranks.world);
      return most;
    }();
    if (largest != ranks.smallest_local_size) {
      throw Error("communicator two_dimensional",
                  fmt::format("hosts have {} to {} ranks, and NCCL needs the same number on each",
                              ranks.smallest_local_size, largest),
                  "take hierarchical", Status::usage);
    }
    const Id of_host = exchange_id(ranks.host), of_peers = exchange_id(ranks.peers);
    all_or_none(ranks.world, [&] {
      host_ = std::make_unique<NcclComm>(of_host, ranks.host, options, "within the host");
      peers_ = std::make_unique<NcclComm>(of_peers, ranks.peers, options, "between hosts");
    });
  }

  void reduce(const Values& values, cudaStream_t stream) override {
    const std::size_t slice = (values.count + ranks_ - 1) / ranks_, bytes = slice * bytes_of(values.type);
    const std::size_t length = values.count * bytes_of(values.type);
    const bool divides = slice * ranks_ == values.count;
    std::byte* data = values.data;
    if (!divides) {
      grow(padded_, cuda::Buffer::Kind::device, bytes * ranks_, stream);
      data = padded_.data<std::byte>();
      PACELINE_CHECK_CUDA(cudaMemcpyAsync(data, values.data, length, cudaMemcpyDefault, stream));
      PACELINE_CHECK_CUDA(cudaMemsetAsync(data + length, 0, bytes * ranks_ - length, stream));
    }
    const ncclDataType_t type = nccl_type(values.type);
    std::byte* const own = data + rank_ * bytes;
    host_->call("ncclReduceScatter",
                [&](ncclComm_t comm) { return ncclReduceScatter(data, own, slice, type, ncclSum, comm, stream); });
    exchange_.reduce(*peers_, {values.type, own, slice, values.divisor}, stream);
    host_->call("ncclAllGather", [&](ncclComm_t comm) { return ncclAllGather(own, data, slice, type, comm, stream); });
    if (!divides) PACELINE_CHECK_CUDA(cudaMemcpyAsync(values.data, data, length, cudaMemcpyDefault, stream));
  }

  bool uses_mpi() const override { return false; }
  std::vector<NcclComm*> comms() override { return {host_.get(), peers_.get()}; }

 private:
  const std::size_t ranks_, rank_;  // of the host
  std::unique_ptr<NcclComm> host_, peers_;
  SliceExchange exchange_;
  cuda::Buffer padded_;
};

}  // namespace

std::unique_ptr<Allreduce> make_two_dimensional(const Ranks& ranks, const Options& options) {
  return std::make_unique<TwoDimensional>(ranks, options);
}

}  // namespace paceline::train::nccl
