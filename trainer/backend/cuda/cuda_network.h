// SPDX-License-Identifier: Apache-2.0
// A network's layers, parameters and activations on one GPU, and the order in which they compute.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "trainer/backend/cuda/layers.h"
#include "trainer/nn/network.h"

namespace paceline::train::cuda {

struct NetworkSettings {
  Precision precision = Precision::f32;
  std::int64_t batch = 1;
  bool winograd = true, freeze_batch_norm = false;
  bool fuse = true;  // fuse convolutions with batch norms where cuDNN can (convolution.cpp)
  BatchNormOptions batch_norm{};
  bool gradient_of_image = false;  // computed too; for tests
};

class CudaNetwork {
 public:
  // The stream and the plans must outlive it. Throws std::invalid_argument for a network that it cannot compute, and
  // Error for one that is too large.
  CudaNetwork(const Network& network, const NetworkSettings& settings, const Device& device, cudaStream_t stream,
              PlanCache& plans);

  // The activation of the image, to be filled before forward(). The output of a last layer that is linear is in fp32.
  Tensor& tensor(std::size_t layer) { return build_.tensors[layer]; }
  const std::vector<Layer>& layers() const { return network_.layers(); }

  // The gradient of the last layer's output, to be filled before backward(), in the activations' storage.
  void* output_gradient() const { return output_gradient_; }

  // Asynchronous. after: called when the work of a layer has been queued in the stream.
  void forward(Mode mode, LayerObserver* observer);
  using After = std::function<void(std::size_t layer)>;
  void backward(LayerObserver* observer, const After& after);

  const std::vector<CudaParameter>& parameters() const { return parameters_; }
  std::size_t first_parameter(std::size_t layer) const { return first_parameter_[layer]; }  // of the layer's
  Flat& flat() { return flat_; }
  std::size_t elements() const { return elements_; }  // of the weights, padding included
  std::size_t statistics() const { return statistics_; }
  Step* step() const { return step_.data<Step>(); }  // in GPU memory
  Storage storage() const { return build_.storage(); }
  int tuned() const { return cudnn_.tuned(); }
  int fused() const { return build_.fused; }  // cuDNN plans that do a part of a batch norm

 private:
  void place_parameters();

  Network network_;
  Cudnn cudnn_;
  Blas blas_;
  std::vector<CudaParameter> parameters_;
  std::vector<std::size_t> first_parameter_;
  std::size_t elements_ = 0, statistics_ = 0;
  Buffer weights_, gradients_, running_, narrow_, step_, partials_, filter_gradient_;
  Flat flat_;
  Build build_;
  std::vector<std::unique_ptr<CudaLayer>> layers_;  // that of layer 1 first
  void* output_gradient_ = nullptr;
};

}  // namespace paceline::train::cuda
