// SPDX-License-Identifier: Apache-2.0
// Algorithms without NCCL, for several ranks on one GPU, which NCCL refuses, and for comparison: the algorithms of
// comm/ on pinned host memory, or the MPI library's allreduce on GPU memory.
#include "trainer/comm/algorithms.h"
#include "trainer/comm/element.h"
#include "trainer/comm/gpu/peers.h"

namespace paceline::train::nccl {
namespace {

class Staged : public Allreduce {
 public:
  Staged(const std::string& name, const Ranks& ranks, const Options& options)
      : alone_(ranks.size == 1), element_(options.dtype), host_(make_allreduce(name, ranks)) {}

  void reduce(const Values& values, cudaStream_t stream) override {
    if (alone_) return;
    const std::size_t bytes = values.count * element_.bytes();
    grow(staging_, cuda::Buffer::Kind::pinned, bytes, stream);
    auto* const staging = staging_.data<std::byte>();
    PACELINE_CHECK_CUDA(cudaMemcpyAsync(staging, values.data, bytes, cudaMemcpyDefault, stream));
    wait_for_stream(stream);
    host_->reduce({element_, staging, values.count, values.divisor});
    PACELINE_CHECK_CUDA(cudaMemcpyAsync(values.data, staging, bytes, cudaMemcpyDefault, stream));
  }

  bool uses_mpi() const override { return true; }
  bool by_segment() const override { return host_->by_segment(); }

 private:
  const bool alone_;
  const Element element_;
  std::unique_ptr<train::Allreduce> host_;
  cuda::Buffer staging_;
};

// mpi and naive work in place. flat copies to one buffer and reduces to another; the copies are its cost.
class CudaAware : public Allreduce {
 public:
  CudaAware(const std::string& name, const Ranks& ranks)
      : ranks_(ranks), packs_(name == "flat"), by_segment_(name == "naive") {}

  void reduce(const Values& values, cudaStream_t stream) override {
    if (ranks_.size == 1) return;
    const std::size_t bytes = values.count * sizeof(float);
    std::byte* sums = values.data;
    const void* from = MPI_IN_PLACE;
    if (packs_) {
      grow(packed_, cuda::Buffer::Kind::device, bytes, stream);
      grow(sums_, cuda::Buffer::Kind::device, bytes, stream);
      from = packed_.data();
      sums = sums_.data<std::byte>();
      PACELINE_CHECK_CUDA(cudaMemcpyAsync(packed_.data(), values.data, bytes, cudaMemcpyDefault, stream));
    }
    wait_for_stream(stream);  // MPI does not follow streams
    MPI_Allreduce(from, sums, static_cast<int>(values.count), MPI_FLOAT, MPI_SUM, ranks_.world);
    Values{values.type, sums, values.count, values.divisor}.divide(stream);
    if (packs_) PACELINE_CHECK_CUDA(cudaMemcpyAsync(values.data, sums, bytes, cudaMemcpyDefault, stream));
  }

  bool uses_mpi() const override { return true; }
  bool by_segment() const override { return by_segment_; }

 private:
  const Ranks& ranks_;
  const bool packs_, by_segment_;
  cuda::Buffer packed_, sums_;
};

}  // namespace

std::unique_ptr<Allreduce> make_staged(const std::string& name, const Ranks& ranks, const Options& options) {
  return std::make_unique<Staged>(name, ranks, options);
}

std::unique_ptr<Allreduce> make_cuda_aware(const std::string& name, const Ranks& ranks) {
  return std::make_unique<CudaAware>(name, ranks);
}

}  // namespace paceline::train::nccl
