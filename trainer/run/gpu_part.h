// The part of the program that needs CUDA's libraries: a shared library of its own, loaded when a GPU is asked for,
// since they take 0.1 s and 200 MB of every process, and a machine without GPUs need not have them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/comm/gpu/options.h"
#include "trainer/comm/ranks.h"
#include "trainer/nn/model.h"
#include "trainer/optim/optimizer.h"

namespace paceline::train {

struct GpuPart {
  // nccl::use_device_of_rank()
  void (*use_device)(const Ranks& ranks, bool share);

  // nccl::make_device_communicator()
  Communicator (*make_communicator)(const std::string& name, const nccl::Options& options,
                                    std::unique_ptr<Ranks> ranks);

  // On the current device, as use_device() leaves it. make_model throws std::invalid_argument for options that no model
  // has; both throw Error where the device refuses.
  std::string (*device_name)();
  std::unique_ptr<Model> (*make_model)(const ModelOptions& options);
  std::unique_ptr<Optimizer> (*make_optimizer)(const OptimizerOptions& options,
                                               const std::vector<Parameter>& parameters, std::size_t elements);
};

// Loads ../lib/libpaceline-train-cuda.so beside this program on the first call. Throws Error (usage) where this program
// was built without it, or a library that it needs is not found.
const GpuPart& gpu_part();

// What the library has to give; defined in it alone.
extern "C" const GpuPart* paceline_gpu_part();

}  // namespace paceline::train
