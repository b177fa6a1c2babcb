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
#include "trainer/nn/model.h"
#include "trainer/nn/network.h"

namespace paceline::train {

// A layer's output and, during backward, what its readers contributed to its gradient.
struct Activation {
  dnnl::memory value;
  std::vector<dnnl::memory> gradients;
  bool needs_gradient = true;
};

// A parameter, where it lies in the flat buffers, fp32, and oneDNN's views of its weights and gradient there.
struct CpuParameter {
  Parameter parameter;
  onednn::Desc layout;
  dnnl::memory weights, gradient;
};

// What the layers of one network share while it is built.
struct CpuBuild {
  dnnl::engine engine;
  dnnl::stream stream;
  MemoryPlan plan;
  std::int64_t batch;
  bool freeze_batch_norm, winograd;
  std::vector<Activation> activations;    // by layer
  std::vector<CpuParameter> parameters;   // in order of the layers
  std::vector<dnnl::memory> statistics;   // running means and variances
  BatchNormOptions batch_norm{};          // where it is not frozen
  onednn::Type type = onednn::Type::f32;  // of activations and their gradients; everything else is fp32

  Activation& activation(int layer) { return activations[static_cast<std::size_t>(layer)]; }
  dnnl::memory::dims dims(const Shape& shape) const { return {batch, shape.channels, shape.height, shape.width}; }
  // A parameter in the given layout; its memory gets an address when all are known.
  CpuParameter& add_parameter(const ParameterShape& shape, const onednn::Desc& layout, bool batch_norm = false);
};

// A primitive with its arguments.
struct Call {
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;
  void run(const dnnl::stream& stream) const { primitive.execute(stream, arguments); }
  explicit operator bool() const { return static_cast<bool>(primitive); }
};

constexpr float batch_norm_epsilon = 1e-5f;  // PyTorch's

class CpuLayer {
 public:
  explicit CpuLayer(const Layer& layer) : layer_(layer) {}
  virtual ~CpuLayer() = default;
  CpuLayer(const CpuLayer&) = delete;
  CpuLayer& operator=(const CpuLayer&) = delete;

  // Called once per layer in reverse order, after all constructors: takes the output's gradients, announces those of
  // the inputs.
  virtual void plan_backward(CpuBuild& build, Activation& output) = 0;
  virtual void forward(Mode mode) = 0;
  virtual void backward() = 0;
  virtual void seed_dropout(std::uint64_t) {}

  const Layer& layer() const { return layer_; }

 protected:
  Layer layer_;
};

// Appends the layer's activation to the build's. The activations' capacity must suffice.
std::unique_ptr<CpuLayer> make_layer(const Layer& layer, CpuBuild& build);
std::unique_ptr<CpuLayer> make_convolution(const Layer& layer, CpuBuild& build);
std::unique_ptr<CpuLayer> make_winograd_convolution(const Layer& layer, CpuBuild& build);  // null where not taken
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

// work(pointers to the tensors' numbers): float* or Bf16*, as the first tensor's are; the others' are the same.
template <class Work, class... Memories>
void with_numbers(Work work, const dnnl::memory& first, const Memories&... others) {
  if (onednn::type(first.get_desc()) == onednn::Type::bf16) {
    work(static_cast<Bf16*>(first.get_data_handle()), static_cast<Bf16*>(others.get_data_handle())...);
  } else {
    work(data(first), data(others)...);
  }
}

// A parameter's weights in the layout and type that a primitive wants: themselves, or a copy, which run() makes before
// each use and whose memory is lent out between. plan() comes after that of what the primitive reads and writes.
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

// The output's one gradient, for a layer whose backward reads one: further contributions are added to the first by
// run(), which the layer calls before it reads. overwrite: the layer will write over it.
class SummedGradient {
 public:
  void plan(Activation& output, CpuBuild& build, bool overwrite = false);
  void run() const;
  const dnnl::memory& memory() const { return sum_; }

 private:
  dnnl::memory sum_, shared_;
  std::vector<dnnl::memory> others_;
};

}  // namespace paceline::train
