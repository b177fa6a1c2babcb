// SPDX-License-Identifier: Apache-2.0
// The layers of a network on oneDNN. Activations and their gradients keep the blocked layout that the convolutions
// chose; one file per kind of layer makes its primitives when the network is built, so that a step only runs them.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "trainer/backend/cpu/bfloat16.h"
#include "trainer/backend/cpu/memory_plan.h"
#include "trainer/backend/cpu/onednn.h"
#include "trainer/backend/cpu/winograd.h"
#include "trainer/nn/model.h"
#include "trainer/nn/network.h"

namespace paceline::train {

// A layer's output and, during backward, the contributions of its readers to its gradient.
struct Activation {
  dnnl::memory value;
  std::vector<dnnl::memory> gradients;
  bool needs_gradient = true;
};

// A parameter, its place in the flat fp32 buffers, and oneDNN's views of its weights and gradient there.
struct CpuParameter {
  Parameter parameter;
  onednn::Desc layout;
  dnnl::memory weights, gradient;
};

// The state that the layers of one network share while it is built.
struct CpuBuild {
  dnnl::engine engine;
  dnnl::stream stream;
  MemoryPlan plan;
  std::int64_t batch;
  bool freeze_batch_norm, winograd;
  std::vector<Activation> activations;    // by layer
  std::vector<CpuParameter> parameters;   // in order of the layers
  std::vector<dnnl::memory> statistics;   // running means and variances
  BatchNormOptions batch_norm{};          // without effect on frozen batch norms
  onednn::Type type = onednn::Type::f32;  // of activations and their gradients; everything else is fp32
  std::uint64_t layers_before = 0;        // of a part of a network

  Activation& activation(int layer) { return activations[static_cast<std::size_t>(layer)]; }
  dnnl::memory::dims dims(const Shape& shape) const { return {batch, shape.channels, shape.height, shape.width}; }
  // Adds a parameter in the given layout. Its memory gets an address when all parameters are known.
  CpuParameter& add_parameter(const ParameterShape& shape, const onednn::Desc& layout, bool batch_norm = false);
};

// A primitive with its arguments.
struct Call {
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;
  void run(const dnnl::stream& stream) const { primitive.execute(stream, arguments); }
  explicit operator bool() const { return static_cast<bool>(primitive); }
};

// The code that carries out a computation of a layer: "forward", "weights' gradient", "data's gradient" or "gradient".
// name: oneDNN's, such as "jit:avx2".
struct Implementation {
  const char* computation;
  std::string name;
};

constexpr float batch_norm_epsilon = 1e-5f;  // PyTorch's

class CpuLayer {
 public:
  explicit CpuLayer(const Layer& layer) : layer_(layer) {}
  virtual ~CpuLayer() = default;
  CpuLayer(const CpuLayer&) = delete;
  CpuLayer& operator=(const CpuLayer&) = delete;

  // Called once for each layer in reverse order, after all constructors: takes the output's gradients and adds those of
  // the inputs.
  virtual void plan_backward(CpuBuild& build, Activation& output) = 0;
  virtual void forward(Mode mode) = 0;
  virtual void backward() = 0;
  virtual void seed_dropout(std::uint64_t) {}
  virtual std::vector<Implementation> implementations() const { return {}; }  // empty: loops of ours

  const Layer& layer() const { return layer_; }

 protected:
  Layer layer_;
};

// Appends the layer's activation to the build's. The activations' capacity must suffice.
std::unique_ptr<CpuLayer> make_layer(const Layer& layer, CpuBuild& build);
std::unique_ptr<CpuLayer> make_convolution(const Layer& layer, CpuBuild& build);
std::unique_ptr<CpuLayer> make_winograd_convolution(const Layer& layer,
                                                    CpuBuild& build);  // null if this algorithm is not the faster one
// The code of Winograd's algorithm that layers use on this processor, in the layouts of oneDNN's convolutions. Null
// where oneDNN has its own, and where there is none. bf16: images are, else fp32.
const winograd::Code* winograd_code(bool bf16 = false);
std::unique_ptr<CpuLayer> make_batch_norm(const Layer& layer, CpuBuild& build);
std::unique_ptr<CpuLayer> make_batch_norm_variant(const Layer& layer, CpuBuild& build);
std::unique_ptr<CpuLayer> make_pooling(const Layer& layer, CpuBuild& build);
std::unique_ptr<CpuLayer> make_linear(const Layer& layer, CpuBuild& build);
std::unique_ptr<CpuLayer> make_relu(const Layer& layer, CpuBuild& build);
std::unique_ptr<CpuLayer> make_add_relu(const Layer& layer, CpuBuild& build);
std::unique_ptr<CpuLayer> make_dropout(const Layer& layer, CpuBuild& build);

inline float* data(const dnnl::memory& memory) { return static_cast<float*>(memory.get_data_handle()); }  // of fp32
inline std::size_t elements(const dnnl::memory& memory) {
  const onednn::Desc desc = memory.get_desc();
  return onednn::bytes(desc) / dnnl::memory::data_type_size(onednn::type(desc));
}

// Calls work(pointers to the tensors' values) with float* or Bf16*, the type of the first tensor, which the others have
// too.
template <class Work, class... Memories>
void with_numbers(Work work, const dnnl::memory& first, const Memories&... others) {
  if (onednn::type(first.get_desc()) == onednn::Type::bf16) {
    work(static_cast<Bf16*>(first.get_data_handle()), static_cast<Bf16*>(others.get_data_handle())...);
  } else {
    work(data(first), data(others)...);
  }
}

// A parameter's weights in the layout and type that a primitive needs: the weights themselves, or a copy that run()
// makes before each use. Other layers use the copy's memory between uses. plan() comes after the plans of the
// primitive's other tensors.
class WeightsFor {
 public:
  void plan(const dnnl::memory& weights, const onednn::Desc& wanted, CpuBuild& build);
  void run(const dnnl::stream& stream) const {
    if (reorder_) reorder_.run(stream);
  }
  const dnnl::memory& memory() const { return memory_; }

 private:
  dnnl::memory memory_;
  Call reorder_;
};

// The single gradient of an output, for a layer whose backward reads one. run() adds further contributions to the
// first; the layer calls it before it reads. overwrite: the layer will overwrite the gradient.
class SummedGradient {
 public:
  void plan(Activation& output, CpuBuild& build, bool overwrite = false);
  void run() const;
  const dnnl::memory& memory() const { return sum_; }

 private:
  dnnl::memory sum_, shared_;
  std::vector<dnnl::memory> others_;
};

// A layer with weights: a convolution or a linear layer. Descs: oneDNN's descriptions of its primitives. Pass: what
// runs a primitive, Call or more. The constructor and plan_backward() make the passes.
template <class Descs, class Pass>
class LayerWithWeights : public CpuLayer {
 public:
  LayerWithWeights(const Layer& layer, CpuBuild& build) : CpuLayer(layer), stream_(build.stream) {}

  void forward(Mode) override {
    weights_for_forward_.run(stream_);
    forward_.run(stream_);
  }

  void backward() override {
    gradient_.run();
    backward_weights_.run(stream_);
    if (!backward_data_) return;
    weights_for_backward_.run(stream_);
    backward_data_.run(stream_);
  }

  std::vector<Implementation> implementations() const override {
    std::vector<Implementation> result{{"forward", descs_.forward.impl_info_str()},
                                       {"weights' gradient", descs_.backward_weights.impl_info_str()}};
    if (descs_.backward_data) result.push_back({"data's gradient", descs_.backward_data->impl_info_str()});
    return result;
  }

 protected:
  dnnl::stream stream_;
  Descs descs_;
  dnnl::memory weights_;
  SummedGradient gradient_;
  WeightsFor weights_for_forward_, weights_for_backward_;
  Pass forward_, backward_weights_, backward_data_;
};

}  // namespace paceline::train
