// SPDX-License-Identifier: Apache-2.0
// `pure_nccl`, as in ChainerMN: one ncclAllReduce over all ranks, whose algorithm NCCL chooses. `single_node` is the
// same within one host.
#include <fmt/format.h>

#include "trainer/comm/gpu/allreduce.h"
#include "trainer/core/error.h"

namespace paceline::train::nccl {
namespace {

class PureNccl : public Allreduce {
 public:
  PureNccl(const Ranks& ranks, const Options& options) {
    const Id id = exchange_id(ranks.world);
    all_or_none(ranks.world, [&] { comm_ = std::make_unique<NcclComm>(id, ranks.world, options, "gradients"); });
  }

  void reduce(const Values& values, cudaStream_t stream) override {
    comm_->call("ncclAllReduce", [&](ncclComm_t comm) {
      return ncclAllReduce(values.data, values.data, values.count, nccl_type(values.type), ncclSum, comm, stream);
    });
    values.divide(stream);
  }

  // NCCL's slices have equal lengths. The last rank also owns the numbers that are left, fewer than there are ranks.
  bool has_halves() const override { return true; }
  Slice own_slice(std::size_t count) const override {
    const std::size_t length = count / ranks(), first = length * static_cast<std::size_t>(comm_->rank());
    return {first, comm_->rank() == last() ? count - first : length};
  }

  void reduce_scatter(const Values& values, cudaStream_t stream) override {
    const std::size_t length = values.count / ranks(), rest = values.count - length * ranks();
    const ncclDataType_t type = nccl_type(values.type);
    const Slice own = own_slice(values.count);
    std::byte* const tail = values.at(length * ranks());
    comm_->group("ncclReduceScatter", [&](ncclComm_t comm) {
      ncclResult_t result = ncclReduceScatter(values.data, values.at(own.first), length, type, ncclSum, comm, stream);
      if (rest > 0 && result == ncclSuccess) result = ncclReduce(tail, tail, rest, type, ncclSum, last(), comm, stream);
      return result;
    });
    values.divide(own, stream);
  }

  void all_gather(const Values& values, cudaStream_t stream) override {
    const std::size_t length = values.count / ranks(), rest = values.count - length * ranks();
    const ncclDataType_t type = nccl_type(values.type);
    std::byte* const tail = values.at(length * ranks());
    const std::byte* const own = values.at(own_slice(values.count).first);
    comm_->group("ncclAllGather", [&](ncclComm_t comm) {
      ncclResult_t result = ncclAllGather(own, values.data, length, type, comm, stream);
      if (rest > 0 && result == ncclSuccess) result = ncclBroadcast(tail, tail, rest, type, last(), comm, stream);
      return result;
    });
  }

  bool uses_mpi() const override { return false; }
  std::vector<NcclComm*> comms() override { return {comm_.get()}; }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(comm_->size()); }
  int last() const { return comm_->size() - 1; }

  std::unique_ptr<NcclComm> comm_;
};

}  // namespace

std::unique_ptr<Allreduce> make_pure_nccl(const Ranks& ranks, const Options& options) {
  return std::make_unique<PureNccl>(ranks, options);
}

std::unique_ptr<Allreduce> make_single_node(const Ranks& ranks, const Options& options) {
  if (ranks.hosts > 1) {
    throw Error("communicator single_node", fmt::format("the {} ranks are on {} hosts", ranks.size, ranks.hosts),
                "take another, e.g. pure_nccl", Status::usage);
  }
  return make_pure_nccl(ranks, options);
}

}  // namespace paceline::train::nccl
