// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cpu/kernels.h"
#include "trainer/backend/cpu/layers.h"

namespace paceline::train {
namespace {

// Normalises with the batch's biased variance and moves the running variance by the unbiased one, as PyTorch does.
class CpuBatchNorm final : public CpuLayer {
 public:
  CpuBatchNorm(const Layer& layer, CpuBuild& build, const onednn::BatchNorm& descs)
      : CpuLayer(layer),
        stream_(build.stream),
        frozen_(build.freeze_batch_norm),
        momentum_(build.batch_norm.momentum),
        descs_(descs) {
    Activation& input = build.activation(layer.input);
    Activation& output = build.activations.emplace_back();
    input_ = input.value;
    output.value = build.plan.acquire(descs_.train.dst_desc());

    const std::vector<ParameterShape> shapes = layer.parameters();
    const onednn::Desc vector = onednn::plain_layout({layer.out.channels});
    const CpuParameter& scale = build.add_parameter(shapes[0], vector, true);
    const dnnl::memory scale_weights = scale.weights, scale_gradient = scale.gradient;
    const CpuParameter& shift = build.add_parameter(shapes[1], vector, true);
    running_mean_ = build.statistics.emplace_back(dnnl::memory(vector, build.engine, DNNL_MEMORY_NONE));
    running_variance_ = build.statistics.emplace_back(dnnl::memory(vector, build.engine, DNNL_MEMORY_NONE));
    mean_ = frozen_ ? running_mean_ : build.plan.acquire(vector);
    variance_ = frozen_ ? running_variance_ : build.plan.acquire(vector);

    evaluate_ = {dnnl::batch_normalization_forward(descs_.evaluate),
                 {{DNNL_ARG_SRC, input.value},
                  {DNNL_ARG_MEAN, running_mean_},
                  {DNNL_ARG_VARIANCE, running_variance_},
                  {DNNL_ARG_SCALE, scale_weights},
                  {DNNL_ARG_SHIFT, shift.weights},
                  {DNNL_ARG_DST, output.value}}};
    train_ = {dnnl::batch_normalization_forward(descs_.train), evaluate_.arguments};
    train_.arguments[DNNL_ARG_MEAN] = mean_;
    train_.arguments[DNNL_ARG_VARIANCE] = variance_;
    backward_ = {dnnl::batch_normalization_backward(descs_.backward),
                 {{DNNL_ARG_SRC, input.value},
                  {DNNL_ARG_MEAN, mean_},
                  {DNNL_ARG_VARIANCE, variance_},
                  {DNNL_ARG_SCALE, scale_weights},
                  {DNNL_ARG_DIFF_SCALE, scale_gradient},
                  {DNNL_ARG_DIFF_SHIFT, shift.gradient}}};
    if (onednn::batch_norm_backward_takes_shift) backward_.arguments[DNNL_ARG_SHIFT] = shift.weights;
    if (layer.relu) {
      const dnnl::memory workspace = build.plan.acquire(descs_.train.workspace_desc());
      train_.arguments[DNNL_ARG_WORKSPACE] = workspace;
      backward_.arguments[DNNL_ARG_WORKSPACE] = workspace;
    }
    const double count = static_cast<double>(build.batch * layer.out.height * layer.out.width);
    unbiased_ = count > 1 ? static_cast<float>(count / (count - 1)) : 1.0f;
  }

  void plan_backward(CpuBuild& build, Activation& output) override {
    gradient_.plan(output, build);
    const dnnl::memory source_gradient = build.plan.acquire(input_.get_desc());
    backward_.arguments[DNNL_ARG_DIFF_DST] = gradient_.memory();
    backward_.arguments[DNNL_ARG_DIFF_SRC] = source_gradient;
    build.activation(layer_.input).gradients.push_back(source_gradient);
    build.plan.release(gradient_.memory());
  }

  void forward(Mode mode) override {
    if (mode == Mode::evaluate) return evaluate_.run(stream_);
    train_.run(stream_);
    if (frozen_) return;
    const auto channels = static_cast<std::size_t>(layer_.out.channels);
    kernels::move_average(data(mean_), data(running_mean_), channels, momentum_, 1);
    kernels::move_average(data(variance_), data(running_variance_), channels, momentum_, unbiased_);
  }

  void backward() override {
    gradient_.run();
    backward_.run(stream_);
  }

  std::vector<Implementation> implementations() const override {
    return {{"forward", descs_.train.impl_info_str()},
            {"evaluation", descs_.evaluate.impl_info_str()},
            {"gradient", descs_.backward.impl_info_str()}};
  }

 private:
  dnnl::stream stream_;
  bool frozen_;
  float momentum_, unbiased_ = 1;
  onednn::BatchNorm descs_;
  dnnl::memory input_, mean_, variance_, running_mean_, running_variance_;
  SummedGradient gradient_;
  Call train_, evaluate_, backward_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_batch_norm(const Layer& layer, CpuBuild& build) {
  const BatchNormOptions& options = build.batch_norm;
  const bool whole_batch = build.freeze_batch_norm || (options.ghost_batch == 0 && !options.sum_over_ranks);
  const dnnl::memory& input = build.activation(layer.input).value;
  if (!whole_batch || onednn::dims(input.get_desc()).size() != 4) return make_batch_norm_variant(layer, build);
  const onednn::BatchNorm descs =
      onednn::batch_norm(build.engine, input.get_desc(), batch_norm_epsilon, layer.relu, build.freeze_batch_norm);
  const bool slow = onednn::is_reference(descs.train.impl_info_str()) ||
                    onednn::is_reference(descs.evaluate.impl_info_str()) ||
                    onednn::is_reference(descs.backward.impl_info_str());  // with ReLU on AVX and SSE4.1
  if (slow) return make_batch_norm_variant(layer, build);
  return std::make_unique<CpuBatchNorm>(layer, build, descs);
}

}  // namespace paceline::train
