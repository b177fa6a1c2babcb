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

  bool uses_mpi() const override { return false; }
  std::vector<NcclComm*> comms() override { return {comm_.get()}; }

 private:
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
