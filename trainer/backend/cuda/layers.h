// SPDX-License-Identifier: Apache-2.0
// The layers of a network on the GPU. Building the network allocates all memory and makes all plans. A step only queues
// the same work in one stream, so that it can be captured in a CUDA graph.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/backend/cuda/cudnn.h"
#include "trainer/backend/cuda/fusion.h"
#include "trainer/backend/cuda/kernels.h"
#include "trainer/backend/cuda/layout.h"
#include "trainer/backend/cuda/matmul.h"
#include "trainer/nn/model.h"

namespace paceline::train::cuda {

// A layer's output, samples × height × width × channels, and the contributions of its readers to its gradient.
struct Tensor {
  void* value = nullptr;  // null: never written, because the next layer is fused with this one
  std::vector<void*> gradients;
  Shape shape;
  std::int64_t samples = 0;
  Storage storage = Storage::f32;
  bool needs_gradient = true;
  std::size_t count() const { return static_cast<std::size_t>(samples * shape.size()); }
  Rows rows() const { return {samples * shape.height * shape.width, shape.channels}; }
};

// Memory for gradients of activations, reused as soon as the last reader of a gradient is done. All work runs in one
// stream, so work that is planned later runs later.
class GradientPool {
 public:
  void* acquire(std::size_t bytes);
  void share(void* memory) { ++owners_.at(memory).count; }
  void release(void* memory);
  int owners(void* memory) const { return owners_.at(memory).count; }

 private:
  struct Owners {
    std::size_t bytes = 0;
    int count = 0;
  };
  std::vector<Buffer> buffers_;
  std::map<void*, Owners> owners_;
  std::multimap<std::size_t, void*> free_;
};

// A parameter and where it lies in the flat buffers.
struct CudaParameter {
  Parameter parameter;
  FilterLayout layout;
};

// The flat buffers. Layers keep offsets, because the gradients may move.
struct Flat {
  float *weights = nullptr, *gradients = nullptr, *statistics = nullptr;
  void* narrow = nullptr;  // the weights in the activations' storage; null where that is fp32
};

// A batch norm and the work that convolutions do for it; null for work that they do not do (convolution.cpp).
struct NormShare {
  const void* x = nullptr;
  float *mean = nullptr, *inverse_deviation = nullptr;
  std::vector<std::size_t> parameters;  // offsets

  float *sum = nullptr, *squares = nullptr;                    // Σx, Σx² by channel: of the one before, forward
  void *scale = nullptr, *shift = nullptr;                     // with which the one behind may apply it
  float *scale_gradient = nullptr, *shift_gradient = nullptr;  // Σdy x̂, Σdy: of the one behind, which also masks dy
};

// The state that the layers of one network share while it is built and while it runs.
struct Build {
  Cudnn& cudnn;
  const Blas& blas;
  cudaStream_t stream;
  Precision precision;
  std::int64_t batch;
  bool winograd, freeze_batch_norm;
  bool fuse;  // convolutions with the batch norms beside them, where cuDNN can
  BatchNormOptions batch_norm;
  Flat& flat;
  Step* step;

  std::vector<Tensor> tensors;                       // by layer
  std::vector<std::vector<std::size_t>> parameters;  // by layer: offsets of its parameters
  std::vector<std::size_t>
      statistics;  // by layer: offset of a batch norm's running mean and of its variance, which follows
  GradientPool gradients;
  std::vector<Buffer> memory;               // of tensors and other state of the layers
  std::map<std::size_t, NormShare> shares;  // by layer, of batch norms
  int fused = 0;                            // plans that do a batch norm's work
  double* partials = nullptr;               // for sums by channel, of any layer
  void* filter_gradient = nullptr;          // of any convolution, in the activations' storage; null where that is fp32

  Storage storage() const { return storage_of(precision); }
  void* allocate(std::size_t bytes);  // zeroed; freed with the network
  const float* weight(std::size_t offset) const { return flat.weights + offset; }
  float* gradient(std::size_t offset) const { return flat.gradients + offset; }
  const void* operand(std::size_t offset) const;  // a weight as products take it
  Tensor& tensor(int layer) { return tensors[static_cast<std::size_t>(layer)]; }
};

class CudaLayer {
 public:
  CudaLayer(const Layer& layer, Build& build) : layer_(layer), b_(build) {}
  virtual ~CudaLayer() = default;
  CudaLayer(const CudaLayer&) = delete;
  CudaLayer& operator=(const CudaLayer&) = delete;

  // Called once for each layer in reverse order, after all constructors: takes the output's gradients and adds those of
  // the inputs.
  virtual void plan_backward(Tensor& output) = 0;
  virtual void forward(Mode mode) = 0;
  virtual void backward() = 0;

  const Layer& layer() const { return layer_; }

 protected:
  Layer layer_;
  Build& b_;
};

// Fills build.tensors[number].
std::unique_ptr<CudaLayer> make_layer(const Layer& layer, std::size_t number, const Fusion& fusion, Build& build);
std::unique_ptr<CudaLayer> make_convolution(const Layer& layer, std::size_t number, const Fusion& fusion, Build& build);
// applied: a convolution may apply this layer to its own input, so that this layer writes no output.
std::unique_ptr<CudaLayer> make_batch_norm(const Layer& norm, std::size_t number, const Layer& output,
                                           std::size_t output_number, bool applied, Build& build);
void add_output(const Layer& layer, std::size_t number, Build& build);  // memory for it

// The gradient of a layer's output as at most `most` tensors. run() adds up the others; call it before they are read.
class SummedGradient {
 public:
  void plan(Tensor& output, Build& build, std::size_t most);
  void run(Build& build) const;
  void* first() const { return parts_[0]; }
  void* second() const { return parts_.size() > 1 ? parts_[1] : nullptr; }
  void release(Build& build) const;  // after the layer has planned all of its readers
 private:
  struct Sum {
    const void *a, *b;
    void* to;
  };
  std::vector<void*> parts_;
  std::vector<Sum> sums_;
  std::size_t count_ = 0;
  Storage storage_ = Storage::f32;
};

}  // namespace paceline::train::cuda
