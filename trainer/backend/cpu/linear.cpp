// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cpu/layers.h"

namespace paceline::train {
namespace {

class CpuLinear final : public LayerWithWeights<onednn::Linear, Call> {
 public:
  CpuLinear(const Layer& layer, CpuBuild& build) : LayerWithWeights(layer, build) {
    Activation& input = build.activation(layer.input);
    Activation& output = build.activations.emplace_back();
    const dnnl::memory::dim outputs = layer.out.channels;
    dnnl::memory::dims weights{outputs, layer.in.channels, layer.in.height, layer.in.width};
    source_ = input.value;
    // If the channels fill their blocks, one pixel in blocks of channels is a plain vector, for which there are faster
    // primitives; otherwise the image's layout is kept.
    const onednn::Desc vector = onednn::plain_layout({build.batch, layer.in.channels}, build.type);
    flat_ = layer.in.height * layer.in.width == 1 && onednn::bytes(input.value.get_desc()) == onednn::bytes(vector);
    if (flat_) {
      weights = {outputs, layer.in.channels};
      source_ = build.plan.view(input.value, vector);
    }
    descs_ = onednn::linear(build.engine, source_.get_desc(), weights,
                            onednn::plain_layout({build.batch, outputs}, build.type), layer.bias, input.needs_gradient);
    output.value = build.plan.acquire(descs_.forward.dst_desc());

    const std::vector<ParameterShape> shapes = layer.parameters();
    const CpuParameter& weight = build.add_parameter(shapes[0], descs_.backward_weights.diff_weights_desc());
    weights_ = weight.weights;
    weights_for_forward_.plan(weights_, descs_.forward.weights_desc(), build);
    forward_ = {
        dnnl::inner_product_forward(descs_.forward),
        {{DNNL_ARG_SRC, source_}, {DNNL_ARG_WEIGHTS, weights_for_forward_.memory()}, {DNNL_ARG_DST, output.value}}};
    backward_weights_ = {dnnl::inner_product_backward_weights(descs_.backward_weights),
                         {{DNNL_ARG_SRC, source_}, {DNNL_ARG_DIFF_WEIGHTS, weight.gradient}}};
    if (layer.bias) {
      const CpuParameter& bias = build.add_parameter(shapes[1], onednn::plain_layout({outputs}));
      forward_.arguments[DNNL_ARG_BIAS] = bias.weights;
      backward_weights_.arguments[DNNL_ARG_DIFF_BIAS] = bias.gradient;
    }
  }

  void plan_backward(CpuBuild& build, Activation& output) override {
    gradient_.plan(output, build);
    backward_weights_.arguments[DNNL_ARG_DIFF_DST] = gradient_.memory();
    Activation& input = build.activation(layer_.input);
    if (descs_.backward_data) {
      const dnnl::memory source_gradient = build.plan.acquire(input.value.get_desc());
      weights_for_backward_.plan(weights_, descs_.backward_data->weights_desc(), build);
      backward_data_ = {
          dnnl::inner_product_backward_data(*descs_.backward_data),
          {{DNNL_ARG_DIFF_DST, gradient_.memory()},
           {DNNL_ARG_WEIGHTS, weights_for_backward_.memory()},
           {DNNL_ARG_DIFF_SRC, flat_ ? build.plan.view(source_gradient, source_.get_desc()) : source_gradient}}};
      input.gradients.push_back(source_gradient);
    }
    build.plan.release(gradient_.memory());
  }

 private:
  bool flat_ = false;
  dnnl::memory source_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_linear(const Layer& layer, CpuBuild& build) {
  return std::make_unique<CpuLinear>(layer, build);
}

}  // namespace paceline::train
