// SPDX-License-Identifier: Apache-2.0
// `non_cuda_aware`, as in ChainerMN: hierarchical for an MPI library that cannot read GPU memory. Messages between
// hosts go through pinned host memory; the GPU computes the sums.
#include <algorithm>

#include "trainer/comm/element.h"
#include "trainer/comm/gpu/peers.h"
#include "trainer/comm/slice_exchange.h"

namespace paceline::train::nccl {
namespace {

class NonCudaAware : public Allreduce {
 public:
  NonCudaAware(const Ranks& ranks, const Options& options)
      : ranks_(ranks), element_(options.dtype), leader_(ranks.local_rank == 0), limit_s_(options.timeout_s) {
    const Id id = exchange_id(ranks.host);
    all_or_none(ranks.world, [&] { host_ = std::make_unique<NcclComm>(id, ranks.host, options, "within the host"); });
  }

  void reduce(const Values& values, cudaStream_t stream) override {
    const ncclDataType_t type = nccl_type(values.type);
    host_->call("ncclReduce", [&](ncclComm_t comm) {
      return ncclReduce(values.data, values.data, values.count, type, ncclSum, 0, comm, stream);
    });
    if (leader_) exchange(values, stream);
    host_->call("ncclBroadcast", [&](ncclComm_t comm) {
      return ncclBroadcast(values.data, values.data, values.count, type, 0, comm, stream);
    });
  }

  bool uses_mpi() const override { return true; }
  std::vector<NcclComm*> comms() override { return {host_.get()}; }

 private:
  void exchange(const Values& values, cudaStream_t stream) {
    int rank = 0, size = 1;
    MPI_Comm_rank(ranks_.peers, &rank);
    MPI_Comm_size(ranks_.peers, &size);
    if (size == 1) return values.divide(stream);
    const std::size_t width = bytes_of(values.type), all = values.count * width;
    const SliceTable slices(values.count, size);
    const Slice own = slice_of(values.count, static_cast<std::size_t>(size), static_cast<std::size_t>(rank));
    const std::size_t copies = own.count * static_cast<std::size_t>(size);
    const SliceTable equal(copies, size);  // `size` times own.count
    const std::size_t bytes = std::max(values.count, copies) * width;
    grow(out_, cuda::Buffer::Kind::pinned, bytes, stream);
    grow(in_, cuda::Buffer::Kind::pinned, bytes, stream);
    grow(device_, cuda::Buffer::Kind::device, copies * width, stream);
    auto* const out = out_.data<std::byte>();
    auto* const in = in_.data<std::byte>();
    auto* const device = device_.data<std::byte>();
    const MPI_Datatype type = element_.type();

    PACELINE_CHECK_CUDA(cudaMemcpyAsync(out, values.data, all, cudaMemcpyDefault, stream));
    wait_for_stream(stream, comms(), limit_s_);
    MPI_Alltoallv(out, slices.counts.data(), slices.firsts.data(), type, in, equal.counts.data(), equal.firsts.data(),
                  type, ranks_.peers);
    PACELINE_CHECK_CUDA(cudaMemcpyAsync(device, in, copies * width, cudaMemcpyDefault, stream));
    for (std::size_t from = 1; from < static_cast<std::size_t>(size); ++from) {
      add(values.type, device, device + from * own.count * width, own.count, stream);
    }
    Values{values.type, device, own.count, values.divisor}.divide(stream);
    PACELINE_CHECK_CUDA(cudaMemcpyAsync(out, device, own.count * width, cudaMemcpyDefault, stream));
    wait_for_stream(stream);
    MPI_Allgatherv(out, static_cast<int>(own.count), type, in, slices.counts.data(), slices.firsts.data(), type,
                   ranks_.peers);
    PACELINE_CHECK_CUDA(cudaMemcpyAsync(values.data, in, all, cudaMemcpyDefault, stream));
  }

  const Ranks& ranks_;
  const Element element_;
  const bool leader_;
  const double limit_s_;
  std::unique_ptr<NcclComm> host_;
  cuda::Buffer out_, in_, device_;
};

}  // namespace

std::unique_ptr<Allreduce> make_non_cuda_aware(const Ranks& ranks, const Options& options) {
  return std::make_unique<NonCudaAware>(ranks, options);
}

}  // namespace paceline::train::nccl
