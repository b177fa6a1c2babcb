// SPDX-License-Identifier: Apache-2.0
// The entry point of libpaceline-train-cuda.so.
#include "trainer/run/gpu_part.h"

#include "trainer/backend/cuda/cuda_model.h"
#include "trainer/comm/gpu/device_communicator.h"
#include "trainer/comm/gpu/device_of_rank.h"
#include "trainer/nn/models.h"

namespace paceline::train {
namespace {

cuda::Device current_device() {
  int current = 0;
  PACELINE_CHECK_CUDA(cudaGetDevice(&current));
  return cuda::visible_devices().devices.at(static_cast<std::size_t>(current));
}

std::string device_name() { return current_device().name; }

std::unique_ptr<Model> make_model(const ModelOptions& options) {
  return cuda::make_cuda_model(build_network(options), options, current_device());
}

}  // namespace
}  // namespace paceline::train

extern "C" const paceline::train::GpuPart* paceline_gpu_part() {
  using namespace paceline::train;
  static constexpr GpuPart part{nccl::use_device_of_rank,  nccl::make_device_communicator, device_name, make_model,
                                cuda::make_cuda_optimizer, cuda::make_cuda_shard_optimizer};
  return &part;
}
