// SPDX-License-Identifier: Apache-2.0
// ReLU, its form for the join of a residual block, and dropout. Their gradients are computed in place.
#include "trainer/backend/cpu/kernels.h"
#include "trainer/backend/cpu/layers.h"

namespace paceline::train {

namespace {

class CpuRelu final : public CpuLayer {
 public:
  CpuRelu(const Layer& layer, CpuBuild& build) : CpuLayer(layer), input_(build.activation(layer.input).value) {
    output_ = build.plan.acquire(input_.get_desc());
    build.activations.emplace_back().value = output_;
  }

  void plan_backward(CpuBuild& build, Activation& output) override {
    gradient_.plan(output, build, true);
    build.activation(layer_.input).gradients.push_back(gradient_.memory());
  }

  void forward(Mode) override {
    with_numbers([&](const auto* x, auto* y) { kernels::relu(x, y, elements(output_)); }, input_, output_);
  }

  void backward() override {
    gradient_.run();
    with_numbers([&](const auto* y, auto* dy) { kernels::relu_backward(y, dy, elements(output_)); }, output_,
                 gradient_.memory());
  }

 private:
  dnnl::memory input_, output_;
  SummedGradient gradient_;
};

class CpuAddRelu final : public CpuLayer {
 public:
  CpuAddRelu(const Layer& layer, CpuBuild& build)
      : CpuLayer(layer),
        stream_(build.stream),
        input_(build.activation(layer.input).value),
        residual_(build.activation(layer.residual).value) {
    output_ = build.plan.acquire(input_.get_desc());
    // With few channels, convolutions may produce the summands in different layouts.
    if (!onednn::same_layout(residual_.get_desc(), input_.get_desc())) {
      const dnnl::memory aligned = build.plan.acquire(input_.get_desc());
      align_ = {dnnl::reorder(residual_, aligned), {{DNNL_ARG_FROM, residual_}, {DNNL_ARG_TO, aligned}}};
      residual_ = aligned;
    }
    build.activations.emplace_back().value = output_;
  }

  // Both summands get the same gradient. The second of the usual two contributions is added in the same pass.
  void plan_backward(CpuBuild& build, Activation& output) override {
    if (output.gradients.size() == 2 && build.plan.owners(output.gradients[1]) == 1) {
      other_ = output.gradients[0];
      output.gradients.erase(output.gradients.begin());
      build.plan.release(other_);
    }
    gradient_.plan(output, build, true);
    const dnnl::memory& sum = gradient_.memory();
    build.activation(layer_.input).gradients.push_back(sum);
    Activation& residual = build.activation(layer_.residual);
    if (!align_) {
      build.plan.share(sum);
      residual.gradients.push_back(sum);
      return;
    }
    const dnnl::memory back = build.plan.acquire(residual.value.get_desc());
    align_gradient_ = {dnnl::reorder(sum, back), {{DNNL_ARG_FROM, sum}, {DNNL_ARG_TO, back}}};
    residual.gradients.push_back(back);
  }

  void forward(Mode) override {
    if (align_) align_.run(stream_);
    with_numbers([&](const auto* a, const auto* b, auto* y) { kernels::add_relu(a, b, y, elements(output_)); }, input_,
                 residual_, output_);
  }

  void backward() override {
    gradient_.run();
    const std::size_t count = elements(output_);
    if (other_) {
      with_numbers([&](const auto* y, const auto* other, auto* sum) { kernels::relu_backward(y, other, sum, count); },
                   output_, other_, gradient_.memory());
    } else {
      with_numbers([&](const auto* y, auto* sum) { kernels::relu_backward(y, sum, count); }, output_,
                   gradient_.memory());
    }
    if (align_gradient_) align_gradient_.run(stream_);
  }

 private:
  dnnl::stream stream_;
  dnnl::memory input_, residual_, output_, other_;
  Call align_, align_gradient_;
  SummedGradient gradient_;
};

class CpuDropout final : public CpuLayer {
 public:
  CpuDropout(const Layer& layer, CpuBuild& build)
      : CpuLayer(layer),
        input_(build.activation(layer.input).value),
        output_(build.plan.acquire(input_.get_desc())),
        mask_(build.plan.acquire(onednn::plain_layout({static_cast<dnnl::memory::dim>(elements(input_))}))),
        number_(build.layers_before + build.activations.size()),
        seed_(number_) {
    build.activations.emplace_back().value = output_;
  }

  void plan_backward(CpuBuild& build, Activation& output) override {
    gradient_.plan(output, build, true);
    build.activation(layer_.input).gradients.push_back(gradient_.memory());
  }

  void forward(Mode mode) override {
    const float drop = mode == Mode::train ? layer_.drop : 0;
    seed_ = seed_ * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;  // a new mask each time
    with_numbers([&](const auto* x, auto* y) { kernels::dropout(x, data(mask_), y, elements(output_), drop, seed_); },
                 input_, output_);
  }

  void seed_dropout(std::uint64_t seed) override { seed_ = seed + number_; }

  void backward() override {
    gradient_.run();
    with_numbers([&](auto* dy) { kernels::multiply(data(mask_), dy, elements(mask_)); }, gradient_.memory());
  }

 private:
  dnnl::memory input_, output_, mask_;
  const std::uint64_t number_;  // of the layer: two layers have different masks
  std::uint64_t seed_;
  SummedGradient gradient_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_relu(const Layer& layer, CpuBuild& build) {
  return std::make_unique<CpuRelu>(layer, build);
}
std::unique_ptr<CpuLayer> make_add_relu(const Layer& layer, CpuBuild& build) {
  return std::make_unique<CpuAddRelu>(layer, build);
}
std::unique_ptr<CpuLayer> make_dropout(const Layer& layer, CpuBuild& build) {
  return std::make_unique<CpuDropout>(layer, build);
}

}  // namespace paceline::train
