// SPDX-License-Identifier: Apache-2.0
// `hierarchical`, ChainerMN's default: NCCL's sum on the first rank of each host, sum of slices among these ranks,
// NCCL's broadcast.
#include "trainer/comm/gpu/peers.h"

namespace paceline::train::nccl {
namespace {

class Hierarchical : public Allreduce {
 public:
  Hierarchical(const Ranks& ranks, const Options& options) : leader_(ranks.local_rank == 0) {
    const Id of_host = exchange_id(ranks.host), of_peers = exchange_id(ranks.peers);
    all_or_none(ranks.world, [&] {
      host_ = std::make_unique<NcclComm>(of_host, ranks.host, options, "within the host");
      if (leader_) peers_ = std::make_unique<NcclComm>(of_peers, ranks.peers, options, "between hosts");
    });
  }

  void reduce(const Values& values, cudaStream_t stream) override {
    const ncclDataType_t type = nccl_type(values.type);
    host_->call("ncclReduce", [&](ncclComm_t comm) {
      return ncclReduce(values.data, values.data, values.count, type, ncclSum, 0, comm, stream);
    });
    if (leader_) exchange_.reduce(*peers_, values, stream);
    host_->call("ncclBroadcast", [&](ncclComm_t comm) {
      return ncclBroadcast(values.data, values.data, values.count, type, 0, comm, stream);
    });
  }

  bool uses_mpi() const override { return false; }

  std::vector<NcclComm*> comms() override {
    if (leader_) return {host_.get(), peers_.get()};
    return {host_.get()};
  }

 private:
  const bool leader_;
  std::unique_ptr<NcclComm> host_, peers_;
  SliceExchange exchange_;
};

}  // namespace

std::unique_ptr<Allreduce> make_hierarchical(const Ranks& ranks, const Options& options) {
  return std::make_unique<Hierarchical>(ranks, options);
}

}  // namespace paceline::train::nccl
