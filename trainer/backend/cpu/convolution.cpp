#include "trainer/backend/cpu/layers.h"

namespace paceline::train {
namespace {

class CpuConvolution final : public CpuLayer {
 public:
  CpuConvolution(const Layer& layer, CpuBuild& build) : CpuLayer(layer), stream_(build.stream) {
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
    weights_for_forward_.plan(weights_, descs_.forward.weights_desc(), build);
    forward_ = {
        dnnl::convolution_forward(descs_.forward),
        {{DNNL_ARG_SRC, input.value}, {DNNL_ARG_WEIGHTS, weights_for_forward_.memory()}, {DNNL_ARG_DST, output.value}}};
    backward_weights_ = {dnnl::convolution_backward_weights(descs_.backward_weights), {}};
    weights_gradient_ = weight.gradient;
    if (layer.bias) {
      const CpuParameter& bias = build.add_parameter(shapes[1], onednn::plain_layout({layer.out.channels}));
      forward_.arguments[DNNL_ARG_BIAS] = bias.weights;
      backward_weights_.arguments[DNNL_ARG_DIFF_BIAS] = bias.gradient;
    }
  }

  void plan_backward(CpuBuild& build, Activation& output) override {
    gradient_.plan(output, build);
    Activation& input = build.activation(layer_.input);
    plan_backward_weights(build, input.value);
    if (descs_.backward_data) {
      const dnnl::memory source_gradient = build.plan.acquire(descs_.backward_data->diff_src_desc());
      weights_for_backward_.plan(weights_, descs_.backward_data->weights_desc(), build);
      backward_data_ = {dnnl::convolution_backward_data(*descs_.backward_data),
                        {{DNNL_ARG_DIFF_DST, gradient_.memory()},
                         {DNNL_ARG_WEIGHTS, weights_for_backward_.memory()},
                         {DNNL_ARG_DIFF_SRC, source_gradient}}};
      input.gradients.push_back(source_gradient);
    }
    build.plan.release(gradient_.memory());
  }

  void forward(Mode) override {
    weights_for_forward_.run(stream_);
    forward_.run(stream_);
  }

  // If the primitive needs other layouts, it works on copies, and its result is copied back.
  void plan_backward_weights(CpuBuild& build, const dnnl::memory& source) {
    std::vector<dnnl::memory> copies;
    const auto in_layout = [&](const dnnl::memory& memory, const onednn::Desc& wanted) {
      if (onednn::same_layout(wanted, memory.get_desc())) return memory;
      return copies.emplace_back(build.plan.acquire(wanted));
    };
    const auto copy = [&](std::vector<Call>& calls, const dnnl::memory& from, const dnnl::memory& to) {
      if (onednn::same_layout(from.get_desc(), to.get_desc())) return;
      calls.push_back({dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}});
    };
    const auto& desc = descs_.backward_weights;
    const dnnl::memory src = in_layout(source, desc.src_desc());
    const dnnl::memory dst = in_layout(gradient_.memory(), desc.diff_dst_desc());
    const dnnl::memory weights = in_layout(weights_gradient_, desc.diff_weights_desc());
    copy(before_backward_weights_, source, src);
    copy(before_backward_weights_, gradient_.memory(), dst);
    copy(after_backward_weights_, weights, weights_gradient_);
    backward_weights_.arguments.insert(
        {{DNNL_ARG_SRC, src}, {DNNL_ARG_DIFF_DST, dst}, {DNNL_ARG_DIFF_WEIGHTS, weights}});
    for (const dnnl::memory& memory : copies) build.plan.release(memory);
  }

  void backward() override {
    gradient_.run();
    for (const Call& call : before_backward_weights_) call.run(stream_);
    backward_weights_.run(stream_);
    for (const Call& call : after_backward_weights_) call.run(stream_);
    if (!backward_data_) return;
    weights_for_backward_.run(stream_);
    backward_data_.run(stream_);
  }

 private:
  dnnl::stream stream_;
  onednn::Convolution descs_;
  dnnl::memory weights_, weights_gradient_;
  SummedGradient gradient_;
  std::vector<Call> before_backward_weights_, after_backward_weights_;
  WeightsFor weights_for_forward_, weights_for_backward_;
  Call forward_, backward_weights_, backward_data_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_convolution(const Layer& layer, CpuBuild& build) {
  if (auto by_winograd = make_winograd_convolution(layer, build)) return by_winograd;
  return std::make_unique<CpuConvolution>(layer, build);
}

}  // namespace paceline::train
