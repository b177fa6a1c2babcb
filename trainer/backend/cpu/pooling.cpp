// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cpu/layers.h"

namespace paceline::train {
namespace {

class CpuPooling final : public CpuLayer {
 public:
  CpuPooling(const Layer& layer, CpuBuild& build) : CpuLayer(layer), stream_(build.stream) {
    Activation& input = build.activation(layer.input);
    Activation& output = build.activations.emplace_back();
    const auto algorithm =
        layer.kind == LayerKind::max_pool ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding;
    descs_ =
        onednn::pooling(build.engine, algorithm, input.value.get_desc(), build.dims(layer.out),
                        {{layer.kernel, layer.kernel}, {layer.stride, layer.stride}, {layer.padding, layer.padding}});
    output.value = build.plan.acquire(descs_.forward.dst_desc());
    forward_ = {dnnl::pooling_forward(descs_.forward), {{DNNL_ARG_SRC, input.value}, {DNNL_ARG_DST, output.value}}};
    backward_.primitive = dnnl::pooling_backward(descs_.backward);
    if (layer.kind == LayerKind::max_pool) {  // keeps the position of each maximum
      const dnnl::memory workspace = build.plan.acquire(descs_.forward.workspace_desc());
      forward_.arguments[DNNL_ARG_WORKSPACE] = workspace;
      backward_.arguments[DNNL_ARG_WORKSPACE] = workspace;
    }
  }

  void plan_backward(CpuBuild& build, Activation& output) override {
    gradient_.plan(output, build);
    const dnnl::memory source_gradient = build.plan.acquire(descs_.backward.diff_src_desc());
    backward_.arguments[DNNL_ARG_DIFF_DST] = gradient_.memory();
    backward_.arguments[DNNL_ARG_DIFF_SRC] = source_gradient;
    build.activation(layer_.input).gradients.push_back(source_gradient);
    build.plan.release(gradient_.memory());
  }

  void forward(Mode) override { forward_.run(stream_); }

  void backward() override {
    gradient_.run();
    backward_.run(stream_);
  }

  std::vector<Implementation> implementations() const override {
    return {{"forward", descs_.forward.impl_info_str()}, {"gradient", descs_.backward.impl_info_str()}};
  }

 private:
  dnnl::stream stream_;
  onednn::Pooling descs_;
  SummedGradient gradient_;
  Call forward_, backward_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_pooling(const Layer& layer, CpuBuild& build) {
  return std::make_unique<CpuPooling>(layer, build);
}

}  // namespace paceline::train
