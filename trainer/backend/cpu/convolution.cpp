// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cpu/layers.h"

namespace paceline::train {
namespace {

// A primitive and the copies that it needs because it wants other layouts than the network's tensors have.
class CopyingCall {
 public:
  void run(const dnnl::stream& stream) const {
    for (const Call& call : before_) call.run(stream);
    call_.run(stream);
    for (const Call& call : after_) call.run(stream);
  }
  explicit operator bool() const { return static_cast<bool>(call_); }

  void set(dnnl::primitive primitive) { call_.primitive = std::move(primitive); }
  void add(int argument, const dnnl::memory& memory) { call_.arguments[argument] = memory; }
  void add_input(int argument, const dnnl::memory& memory, const onednn::Desc& wanted, CpuBuild& build) {
    add(argument, in_layout(memory, wanted, build));
    copy(before_, memory, call_.arguments[argument]);
  }
  void add_output(int argument, const dnnl::memory& memory, const onednn::Desc& wanted, CpuBuild& build) {
    add(argument, in_layout(memory, wanted, build));
    copy(after_, call_.arguments[argument], memory);
  }
  // Other layers use the memory of the copies between calls. Comes after the plans of all arguments.
  void release_copies(CpuBuild& build) {
    for (const dnnl::memory& memory : copies_) build.plan.release(memory);
    copies_.clear();
  }

 private:
  dnnl::memory in_layout(const dnnl::memory& memory, const onednn::Desc& wanted, CpuBuild& build) {
    if (onednn::same_layout(wanted, memory.get_desc())) return memory;
    return copies_.emplace_back(build.plan.acquire(wanted));
  }
  static void copy(std::vector<Call>& calls, const dnnl::memory& from, const dnnl::memory& to) {
    if (onednn::same_layout(from.get_desc(), to.get_desc())) return;
    calls.push_back({dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}});
  }

  std::vector<Call> before_, after_;
  Call call_;
  std::vector<dnnl::memory> copies_;
};

class CpuConvolution final : public LayerWithWeights<onednn::Convolution, CopyingCall> {
 public:
  CpuConvolution(const Layer& layer, CpuBuild& build) : LayerWithWeights(layer, build) {
    Activation& input = build.activation(layer.input);
    Activation& output =
        build.activations.emplace_back();  // capacity was reserved, so references to other elements stay valid
    const dnnl::memory::dims source = build.dims(layer.in);
    descs_ = onednn::convolution(
        build.engine, input.value ? input.value.get_desc() : onednn::any_layout(source, build.type),
        {layer.out.channels, layer.in.channels, layer.kernel, layer.kernel}, layer.bias, build.dims(layer.out),
        {{layer.kernel, layer.kernel}, {layer.stride, layer.stride}, {layer.padding, layer.padding}},
        input.needs_gradient, build.winograd);
    if (!input.value) input.value = build.plan.acquire(descs_.forward.src_desc());  // the image in the stem's layout
    output.value = build.plan.acquire(descs_.forward.dst_desc());

    const std::vector<ParameterShape> shapes = layer.parameters();
    // For fp32 the layout that forward needs. bf16 weights are copied in any case, so they take the layout of the
    // gradient, which then needs no copy.
    const CpuParameter& weight = build.add_parameter(
        shapes[0], build.type == onednn::Type::f32 ? onednn::Desc(descs_.forward.weights_desc())
                                                   : onednn::Desc(descs_.backward_weights.diff_weights_desc()));
    weights_ = weight.weights;
    forward_.set(dnnl::convolution_forward(descs_.forward));
    forward_.add_input(DNNL_ARG_SRC, input.value, descs_.forward.src_desc(), build);
    weights_for_forward_.plan(weights_, descs_.forward.weights_desc(), build);
    forward_.add(DNNL_ARG_WEIGHTS, weights_for_forward_.memory());
    forward_.add(DNNL_ARG_DST, output.value);
    backward_weights_.set(dnnl::convolution_backward_weights(descs_.backward_weights));
    weights_gradient_ = weight.gradient;
    if (layer.bias) {
      const CpuParameter& bias = build.add_parameter(shapes[1], onednn::plain_layout({layer.out.channels}));
      forward_.add(DNNL_ARG_BIAS, bias.weights);
      backward_weights_.add(DNNL_ARG_DIFF_BIAS, bias.gradient);
    }
    forward_.release_copies(build);
  }

  void plan_backward(CpuBuild& build, Activation& output) override {
    gradient_.plan(output, build);
    Activation& input = build.activation(layer_.input);
    const auto& of_weights = descs_.backward_weights;
    backward_weights_.add_input(DNNL_ARG_SRC, input.value, of_weights.src_desc(), build);
    backward_weights_.add_input(DNNL_ARG_DIFF_DST, gradient_.memory(), of_weights.diff_dst_desc(), build);
    backward_weights_.add_output(DNNL_ARG_DIFF_WEIGHTS, weights_gradient_, of_weights.diff_weights_desc(), build);
    backward_weights_.release_copies(build);
    if (descs_.backward_data) {
      const auto& of_data = *descs_.backward_data;
      const dnnl::memory source_gradient = build.plan.acquire(input.value.get_desc());
      backward_data_.set(dnnl::convolution_backward_data(of_data));
      backward_data_.add_input(DNNL_ARG_DIFF_DST, gradient_.memory(), of_data.diff_dst_desc(), build);
      backward_data_.add_output(DNNL_ARG_DIFF_SRC, source_gradient, of_data.diff_src_desc(), build);
      weights_for_backward_.plan(weights_, of_data.weights_desc(), build);
      backward_data_.add(DNNL_ARG_WEIGHTS, weights_for_backward_.memory());
      backward_data_.release_copies(build);
      input.gradients.push_back(source_gradient);
    }
    build.plan.release(gradient_.memory());
  }

 private:
  dnnl::memory weights_gradient_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_convolution(const Layer& layer, CpuBuild& build) {
  if (auto by_winograd = make_winograd_convolution(layer, build)) return by_winograd;
  return std::make_unique<CpuConvolution>(layer, build);
}

}  // namespace paceline::train
