// `pure_nccl`, as ChainerMN has it: one ncclAllReduce over all ranks; how is NCCL's choice. `single_node` is the same,
// within one host.
#include "trainer/comm/gpu/allreduce.h"

namespace paceline::train::nccl {
namespace {

class PureNccl : public Allreduce {
 public:
  PureNccl(const Ranks& ranks, const Options& options) {
    const Id id = exchange_id(ranks.world);
    all_or_none(ranks.world, [&] { library_ = std::make_unique<Library>(id, ranks.world, options, "gradients"); });
  }

  void reduce(const Values& values, cudaStream_t stream) override {
    library_->call("ncclAllReduce", [&](ncclComm_t comm) {
      return ncclAllReduce(values.data, values.data, values.count, nccl_type(values.type), ncclSum, comm, stream);
    });
    values.divide(stream);
  }

  bool uses_mpi() const override { return false; }
  std::vector<Library*> libraries() override { return {library_.get()}; }

 private:
  std::unique_ptr<Library> library_;
};

}  // namespace

std::unique_ptr<Allreduce> make_pure_nccl(const Ranks& ranks, const Options& options) {
  return std::make_unique<PureNccl>(ranks, options);
}

}  // namespace paceline::train::nccl
