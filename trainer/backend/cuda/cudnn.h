// SPDX-License-Identifier: Apache-2.0
// Convolutions through cuDNN's graph interface. Only cudnn.cpp includes the header of cuDNN's C++ layer, which takes
// half a minute to compile.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/backend/cuda/plan_cache.h"
#include "trainer/backend/cuda/runtime.h"

namespace paceline::train::cuda {

// A cuDNN handle on one stream, the work memory of plans, and the cache of the fastest plans.
class Cudnn {
 public:
  // Throws Error if the library is older than version 9.
  Cudnn(const Device& device, cudaStream_t stream, PlanCache& plans);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  int tuned() const { return tuned_; }  // plans that were not in the cache

 private:
  friend class ConvolutionPlan;
  bool reserve(std::size_t bytes);  // work memory for all plans; false if there is not enough

  void* handle_ = nullptr;  // cudnnHandle_t
  cudaStream_t stream_;
  PlanPlace place_;
  PlanCache& plans_;
  Buffer work_;
  int tuned_ = 0;
  bool warm_ = false;  // the GPU's clocks have risen
};

// The version of the cuDNN that was found at run time, as cudnnGetVersion() has it: 91900 for 9.19.0.
std::int64_t cudnn_version();

struct ConvolutionGraph;  // cuDNN's

// One convolution, or one of its two gradients, alone or with the batch norms beside it, with the fastest of cuDNN's
// plans. If the cache does not have it, each plan that cuDNN's heuristics suggest runs a few times on the memory given
// here.
//
// The tensors in this order; those behind the arrow are written. Activations, filters, and the scale and shift of an
// applied batch norm have the type; other values by channel are fp32.
//
//   forward               x, filter → y
//   data_gradient         dy, filter → dx
//   weight_gradient       dy, x → gradient of the filter
//   forward_sums          x, filter → y, Σy, Σy²
//   norm_forward_sums     x, filter, scale, shift → y, Σy, Σy²; the convolution reads max(0, scale × x + shift)
//   norm_weight_gradient  dy, x, scale, shift → gradient of the filter, of the same
//   data_gradient_norm    dy, filter, x, mean, inverse deviation, scale, shift of the batch norm → dx where its ReLU
//                         let x̂ × scale + shift through, else 0; Σdx x̂; Σdx; and three by channel that are not used
class ConvolutionPlan {
 public:
  using Tensors = std::initializer_list<const void*>;

  // tensors: the tensors that it works on. Throws Error if cuDNN has no plan.
  ConvolutionPlan(Cudnn& cudnn, const PlanKey& key, Tensors tensors);
  ~ConvolutionPlan();
  ConvolutionPlan(ConvolutionPlan&&) noexcept;
  ConvolutionPlan& operator=(ConvolutionPlan&&) noexcept;

  // Empty if cuDNN has no plan.
  static std::optional<ConvolutionPlan> if_any(Cudnn& cudnn, const PlanKey& key, Tensors tensors);

  // Asynchronous, in the handle's stream; may be captured.
  void run();
  void run_into(void* last);  // writes there instead of into the last of the tensors

 private:
  bool use(const Plan& plan);
  void tune(const std::string& key);
  bool run_plan();

  Cudnn* cudnn_;
  std::vector<void*> tensors_;
  std::unique_ptr<ConvolutionGraph> graph_;
};

// The first plan of this cuDNN for a GPU that is only described by cuDNN's JSON
// (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION), for machines without a GPU. Throws Error if there is none, and
// std::invalid_argument if cuDNN does not understand the description.
Plan plan_for_described_gpu(const PlanKey& key, const std::string& description);

}  // namespace paceline::train::cuda
