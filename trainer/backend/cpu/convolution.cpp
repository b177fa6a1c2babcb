#include "trainer/backend/cpu/layers.h"

namespace paceline::train {
namespace {

class CpuConvolution final : public CpuLayer {
 public:
  CpuConvolution(const Layer& layer, CpuBuild& build) : CpuLayer(layer), stream_(build.stream) {
    Activation& input = build.activation(layer.input);
    Activation& output = build.activations.emplace_back();  // all were reserved: input stays valid
    const dnnl::memory::dims source = build.dims(layer.in);
    descs_ = onednn::convolution(
        build.engine, input.value ? input.value.get_desc() : onednn::any_layout(source),
        {layer.out.channels, layer.in.channels, layer.kernel, layer.kernel}, layer.bias, build.dims(layer.out),
        {{layer.kernel, layer.kernel}, {layer.stride, layer.stride}, {layer.padding, layer.padding}},
        input.needs_gradient, build.winograd);
    if (!input.value) input.value = build.plan.acquire(descs_.forward.src_desc());  // the image in the stem's layout
    output.value = build.plan.acquire(descs_.forward.dst_desc());

    const std::vector<ParameterShape> shapes = layer.parameters();
    const CpuParameter& weight = build.add_parameter(shapes[0], descs_.forward.weights_desc());
    weights_ = weight.weights;
    forward_ = {dnnl::convolution_forward(descs_.forward),
                {{DNNL_ARG_SRC, input.value}, {DNNL_ARG_WEIGHTS, weights_}, {DNNL_ARG_DST, output.value}}};
    backward_weights_ = {dnnl::convolution_backward_weights(descs_.backward_weights),
                         {{DNNL_ARG_SRC, input.value}, {DNNL_ARG_DIFF_WEIGHTS, weight.gradient}}};
    if (layer.bias) {
      const CpuParameter& bias = build.add_parameter(shapes[1], onednn::plain_layout({layer.out.channels}));
      forward_.arguments[DNNL_ARG_BIAS] = bias.weights;
      backward_weights_.arguments[DNNL_ARG_DIFF_BIAS] = bias.gradient;
    }
  }

  void plan_backward(CpuBuild& build, Activation& output) override {
    gradient_.plan(output, build);
    backward_weights_.arguments[DNNL_ARG_DIFF_DST] = gradient_.memory();
    Activation& input = build.activation(layer_.input);
    if (descs_.backward_data) {
      const dnnl::memory source_gradient = build.plan.acquire(descs_.backward_data->diff_src_desc());
      const onednn::Desc wanted = descs_.backward_data->weights_desc();
      dnnl::memory weights = weights_;
      if (!onednn::same_layout(wanted, weights_.get_desc())) {
        weights = build.plan.acquire(wanted);
        reorder_ = {dnnl::reorder(weights_, weights), {{DNNL_ARG_FROM, weights_}, {DNNL_ARG_TO, weights}}};
        build.plan.release(weights);
      }
      backward_data_ = {
          dnnl::convolution_backward_data(*descs_.backward_data),
          {{DNNL_ARG_DIFF_DST, gradient_.memory()}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DIFF_SRC, source_gradient}}};
      input.gradients.push_back(source_gradient);
    }
    build.plan.release(gradient_.memory());
  }

  void forward(Mode) override { forward_.run(stream_); }

  void backward() override {
    gradient_.run();
    backward_weights_.run(stream_);
    if (!backward_data_) return;
    if (reorder_) reorder_.run(stream_);
    backward_data_.run(stream_);
  }

 private:
  dnnl::stream stream_;
  onednn::Convolution descs_;
  dnnl::memory weights_;
  SummedGradient gradient_;
  Call forward_, backward_weights_, backward_data_, reorder_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_convolution(const Layer& layer, CpuBuild& build) {
  return std::make_unique<CpuConvolution>(layer, build);
}

}  // namespace paceline::train
