// Convolutions through cuDNN's graph interface. The only header of cuDNN's C++ layer costs half a minute of compiling:
// cudnn.cpp alone includes it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>

#include "trainer/backend/cuda/plan_cache.h"
#include "trainer/backend/cuda/runtime.h"

namespace paceline::train::cuda {

// A cuDNN handle on one stream, the memory that plans work in, and what was found out about them before.
class Cudnn {
 public:
  // Throws Error where the library that was found is older than version 9.
  Cudnn(const Device& device, cudaStream_t stream, PlanCache& plans);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  int tuned() const { return tuned_; }  // plans that were not in the cache

 private:
  friend class ConvolutionPlan;
  bool reserve(std::size_t bytes);  // work memory for all plans; false where there is not so much left

  void* handle_ = nullptr;  // cudnnHandle_t
  cudaStream_t stream_;
  PlanPlace place_;
  PlanCache& plans_;
  Buffer work_;
  int tuned_ = 0;
};

struct ConvolutionGraph;  // cuDNN's

// One convolution, or one of its two gradients, with the fastest of cuDNN's plans: that of the cache, else each plan
// that cuDNN's heuristics suggest is run a few times, on the memory given here.
class ConvolutionPlan {
 public:
  // forward: x, filter → y. data_gradient: dy, filter → dx. weight_gradient: dy, x → gradient of the filter, in the
  // storage of the activations. Writes into `out`. Throws Error where cuDNN has no plan.
  ConvolutionPlan(Cudnn& cudnn, const PlanKey& key, const void* first, const void* second, void* out);
  ~ConvolutionPlan();
  ConvolutionPlan(ConvolutionPlan&&) noexcept;

  // Asynchronous, in the handle's stream; may be captured.
  void run(const void* first, const void* second, void* out) const;

 private:
  bool use(const Plan& plan, void** pointers);
  void tune(const std::string& key, void** pointers);

  Cudnn* cudnn_;
  std::unique_ptr<ConvolutionGraph> graph_;
};

// The first plan that this cuDNN makes for a GPU that is only described, by the JSON of cuDNN's own
// (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION): what a machine without a GPU can find out. Throws Error where there is
// none; std::invalid_argument where cuDNN does not understand the description.
Plan plan_for_described_gpu(const PlanKey& key, const std::string& description);

}  // namespace paceline::train::cuda
