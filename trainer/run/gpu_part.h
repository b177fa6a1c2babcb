// SPDX-License-Identifier: Apache-2.0
// The part of the program that needs CUDA's libraries: a shared library that is loaded when a GPU is requested. CUDA's
// libraries cost every process 0.1 s and 200 MB, and a machine without GPUs does not have them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/comm/nccl_options.h"
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

  // On the current device, which use_device() sets. All throw Error if the device refuses; make_model also for options
  // that no model has.
  std::string (*device_name)();
  std::unique_ptr<Model> (*make_model)(const ModelOptions& options);
  std::unique_ptr<Optimizer> (*make_optimizer)(const OptimizerOptions& options,
                                               const std::vector<Parameter>& parameters, std::size_t elements);
  std::unique_ptr<Optimizer> (*make_shard_optimizer)(const OptimizerOptions& options,
                                                     const std::vector<Parameter>& parameters, std::size_t elements,
                                                     Slice shard);
};

// Loads ../lib/libpaceline-train-cuda.so, relative to this program, on the first call. Throws Error (usage) if this
// program was built without it or a library that it needs is not found.
const GpuPart& gpu_part();

// The choice between CPU and GPU. wish: cpu, cuda, or auto, which means cuda if every rank can have a GPU, else cpu.
// Makes this rank's GPU current and returns the GPU part of the program; returns null if the CPU computes. Throws Error
// (usage) on all ranks if a requested GPU is not available, or if two ranks would have the same one without `share`. A
// collective call over all ranks of the job.
const GpuPart* open_gpu(const std::string& wish, bool share);

// The entry point of the library, defined there alone.
extern "C" const GpuPart* paceline_gpu_part();

}  // namespace paceline::train
