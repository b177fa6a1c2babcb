// SPDX-License-Identifier: Apache-2.0
// Batch norm over virtual batches (ghost), over the ranks' whole batch (synchronised) and of a linear layer's result,
// on our own kernels: oneDNN computes statistics of all samples of one rank only, and has no fast form for two
// dimensions. It also replaces oneDNN's reference code for a batch norm with ReLU on AVX and SSE4.1. The formulas of
// the statistics: BatchNormOptions in trainer/nn/model.h. The gradient (Ioffe and Szegedy, arXiv 1502.03167, section 3,
// simplified), with n the number of values behind the statistics and x̂ the normalised input:
//   dx = scale ÷ deviation × (dy − Σdy ÷ n − x̂ Σ(dy x̂) ÷ n),  dscale = Σ(dy x̂),  dshift = Σdy
// Of a synchronised batch norm the sums of dx go over all ranks, those of dscale and dshift over this rank only,
// because the allreduce of the gradients adds them.
#include <algorithm>
#include <cmath>
#include <span>

#include "trainer/backend/cpu/channel_sums.h"
#include "trainer/backend/cpu/kernels.h"
#include "trainer/backend/cpu/layers.h"

namespace paceline::train {
namespace {

class CpuBatchNormVariant final : public CpuLayer {
 public:
  CpuBatchNormVariant(const Layer& layer, CpuBuild& build)
      : CpuLayer(layer), options_(build.batch_norm), frozen_(build.freeze_batch_norm) {
    const dnnl::memory input = build.activation(layer.input).value;
    Activation& output = build.activations.emplace_back();
    input_ = input;
    output_ = output.value = build.plan.acquire(input.get_desc());
    layout_ = channel_layout(input.get_desc());

    const std::vector<ParameterShape> shapes = layer.parameters();
    const onednn::Desc vector = onednn::plain_layout({layer.out.channels});
    const CpuParameter& scale = build.add_parameter(shapes[0], vector, true);
    scale_ = scale.weights;
    scale_gradient_ = scale.gradient;
    const CpuParameter& shift = build.add_parameter(shapes[1], vector, true);
    shift_ = shift.weights;
    shift_gradient_ = shift.gradient;
    running_mean_ = build.statistics.emplace_back(dnnl::memory(vector, build.engine, DNNL_MEMORY_NONE));
    running_variance_ = build.statistics.emplace_back(dnnl::memory(vector, build.engine, DNNL_MEMORY_NONE));

    const auto ghost = static_cast<std::size_t>(options_.ghost_batch);
    const std::size_t step = ghost > 0 && !frozen_ ? ghost : layout_.samples;
    for (std::size_t first = 0; first < layout_.samples; first += step) {
      groups_.push_back({{first, std::min(step, layout_.samples - first)}, zeros(), zeros(), 0});
    }
    channels_ = static_cast<std::size_t>(layer.out.channels);
    sums_.resize(2 * layout_.channels() + 1);
    for (auto* factors : {&factor_, &shift_factor_, &offset_, &slope_}) *factors = zeros();
  }

  void plan_backward(CpuBuild& build, Activation& output) override {
    gradient_.plan(output, build);
    input_gradient_ = build.plan.acquire(input_.get_desc());
    build.activation(layer_.input).gradients.push_back(input_gradient_);
    build.plan.release(gradient_.memory());
  }

  void forward(Mode mode) override {
    const bool given = frozen_ || mode == Mode::evaluate;
    for (Group& group : groups_) {
      if (given) {
        std::copy_n(data(running_mean_), channels_, group.mean.data());
        set_deviation(group, [&](std::size_t c) { return data(running_variance_)[c]; });
      } else {
        gather(group);
      }
      for (std::size_t c = 0; c < channels_; ++c) {
        factor_[c] = data(scale_)[c] * group.inverse_deviation[c];
        shift_factor_[c] = data(shift_)[c];
      }
      with_numbers(
          [&](const auto* x, auto* y) {
            kernels::normalise(layout_, group.samples, x, group.mean.data(), factor_.data(), shift_factor_.data(),
                               layer_.relu, y);
          },
          input_, output_);
    }
  }

  void backward() override {
    gradient_.run();
    double *const sum = sums_.data(), *const products = sum + layout_.channels();
    std::fill_n(data(scale_gradient_), channels_, 0.0f);
    std::fill_n(data(shift_gradient_), channels_, 0.0f);
    for (const Group& group : groups_) {
      with_numbers(
          [&](const auto* x, const auto* y, const auto* dy) {
            kernels::channel_gradients(layout_, group.samples, x, layer_.relu ? y : nullptr, dy, group.mean.data(),
                                       group.inverse_deviation.data(), sum, products);
          },
          input_, output_, gradient_.memory());
      for (std::size_t c = 0; c < channels_; ++c) {
        data(scale_gradient_)[c] += static_cast<float>(products[c]);
        data(shift_gradient_)[c] += static_cast<float>(sum[c]);
      }
      if (!frozen_ && options_.sum_over_ranks) options_.sum_over_ranks(std::span(sums_).first(2 * layout_.channels()));
      for (std::size_t c = 0; c < channels_; ++c) {
        factor_[c] = data(scale_)[c] * group.inverse_deviation[c];
        if (frozen_) continue;  // the statistics are constants: offset and slope stay 0
        offset_[c] = static_cast<float>(sum[c] / group.count);
        slope_[c] = static_cast<float>(products[c] / group.count * group.inverse_deviation[c]);
      }
      with_numbers(
          [&](const auto* x, const auto* y, const auto* dy, auto* dx) {
            kernels::normalise_backward(layout_, group.samples, x, layer_.relu ? y : nullptr, dy, group.mean.data(),
                                        factor_.data(), offset_.data(), slope_.data(), dx);
          },
          input_, output_, gradient_.memory(), input_gradient_);
    }
  }

 private:
  // A virtual batch: its samples and what it was normalised with.
  struct Group {
    Samples samples;
    std::vector<float> mean, inverse_deviation;  // by channel, 0 for those that fill up a block
    double count;                                // values behind the statistics
  };

  std::vector<float> zeros() const { return std::vector<float>(layout_.channels(), 0.0f); }

  template <class Variance>
  void set_deviation(Group& group, Variance variance) {
    for (std::size_t c = 0; c < channels_; ++c) {
      const double square = static_cast<double>(variance(c)) + batch_norm_epsilon;
      group.inverse_deviation[c] = static_cast<float>(1 / std::sqrt(square));
    }
  }

  // Computes the group's biased statistics, and updates the running ones with the unbiased variance.
  void gather(Group& group) {
    double *const sum = sums_.data(), *const squares = sum + layout_.channels();
    with_numbers([&](const auto* x) { kernels::channel_moments(layout_, group.samples, x, sum, squares); }, input_);
    sums_.back() = static_cast<double>(group.samples.count * layout_.pixels);
    if (options_.sum_over_ranks) options_.sum_over_ranks(sums_);
    group.count = sums_.back();
    for (std::size_t c = 0; c < channels_; ++c) {
      const double mean = sum[c] / group.count;
      sum[c] = mean;
      squares[c] = std::max(0.0, squares[c] / group.count - mean * mean);  // float64 keeps the difference accurate
      group.mean[c] = static_cast<float>(mean);
    }
    set_deviation(group, [&](std::size_t c) { return squares[c]; });
    const double unbiased = group.count > 1 ? group.count / (group.count - 1) : 1;
    const double momentum = options_.momentum;
    for (std::size_t c = 0; c < channels_; ++c) {
      float &mean = data(running_mean_)[c], &variance = data(running_variance_)[c];
      mean = static_cast<float>(mean + momentum * (sum[c] - mean));
      variance = static_cast<float>(variance + momentum * (unbiased * squares[c] - variance));
    }
  }

  const BatchNormOptions options_;
  const bool frozen_;
  ChannelLayout layout_;
  std::size_t channels_ = 0;  // without those that fill up a block
  dnnl::memory input_, output_, input_gradient_;
  dnnl::memory scale_, shift_, scale_gradient_, shift_gradient_, running_mean_, running_variance_;
  SummedGradient gradient_;
  std::vector<Group> groups_;
  std::vector<double> sums_;  // Σx, Σx², count, or Σdy, Σdy x̂
  std::vector<float> factor_, shift_factor_, offset_, slope_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_batch_norm_variant(const Layer& layer, CpuBuild& build) {
  return std::make_unique<CpuBatchNormVariant>(layer, build);
}

}  // namespace paceline::train
