// Convolutions through cuDNN's graph interface. The only header of cuDNN's C++ layer costs half a minute of compiling:
// cudnn.cpp alone includes it.
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

// One convolution, or one of its two gradients, alone or with the batch norms beside it, with the fastest of cuDNN's
// plans: that of the cache, else each plan that cuDNN's heuristics suggest is run a few times, on the memory given
// here.
//
// Tensors, in this order; those behind the arrow are written. Activations, filters, and the scale and shift of a batch
// norm that is applied, are of the type; all else that goes by channel is fp32.
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

  // The tensors are those that it works on. Throws Error where cuDNN has no plan.
  ConvolutionPlan(Cudnn& cudnn, const PlanKey& key, Tensors tensors);
  ~ConvolutionPlan();
  ConvolutionPlan(ConvolutionPlan&&) noexcept;
  ConvolutionPlan& operator=(ConvolutionPlan&&) noexcept;

  // Nothing where cuDNN has none.
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

// The first plan that this cuDNN makes for a GPU that is only described, by the JSON of cuDNN's own
// (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION): what a machine without a GPU can find out. Throws Error where there is
// none; std::invalid_argument where cuDNN does not understand the description.
Plan plan_for_described_gpu(const PlanKey& key, const std::string& description);

}  // namespace paceline::train::cuda
