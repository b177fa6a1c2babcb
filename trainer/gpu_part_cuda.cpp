// What libpaceline-train-cuda.so has for the program that loads it.
#include "trainer/gpu_part.h"

#include "trainer/comm/nccl/device_communicator.h"
#include "trainer/comm/nccl/device_of_rank.h"

extern "C" const paceline::train::GpuPart* paceline_gpu_part() {
  using namespace paceline::train;
  static constexpr GpuPart part{nccl::use_device_of_rank, nccl::make_device_communicator};
  return &part;
}
