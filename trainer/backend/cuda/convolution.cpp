// SPDX-License-Identifier: Apache-2.0
// Convolutions, and the parts of neighbouring batch norms that cuDNN can compute in the same kernel, which saves a pass
// over memory each: the sums of the batch norm behind it, while it writes; the batch norm before it with its ReLU,
// while it reads, in forward and for the gradient of the filter, so that the batch norm's result is never written; and
// in backward that ReLU's mask and the sums of that batch norm's gradient. Each of the three is used if cuDNN has a
// plan for it; otherwise the batch norm's own layer does the work: cuDNN 9.19 has all in fp16 for channels in multiples
// of eight on compute capability 8.0 and 9.0, on 10.0 the first (not behind the second) and the third, none in bf16 and
// fp32. cuDNN's kernel from the sums to mean, deviation and running statistics (BNFinalize) is not used: ours is also
// needed for sums that do not come from cuDNN, and computes the variance in fp64.
//
// The effect on accuracy: the sums are fp32, while our kernels sum the results, rounded to fp16, in fp64. cuDNN's
// documentation does not state whether it sums the rounded results. A variance is the difference of two such sums and
// loses bits if the mean is many deviations large. Scale and shift of the batch norm that is applied are rounded to
// fp16, and so is their result before the product. The mask in backward comes from fp32 scale and shift: if the ReLU's
// argument is within rounding of zero, it may differ from forward's.
#include <optional>

#include "trainer/backend/cuda/layers.h"

namespace paceline::train::cuda {
namespace {

class CudaConvolution final : public CudaLayer {
 public:
  CudaConvolution(const Layer& layer, std::size_t number, const Fusion& fusion, Build& build)
      : CudaLayer(layer, build), relu_(fusion.relu), offsets_(build.parameters[number]) {
    add_output(layer, number, build);
    y_ = build.tensors[number].value;
    rows_ = build.tensors[number].rows();
    if (build.fuse && fusion.sums_for) after_ = &build.shares[*fusion.sums_for];
    if (build.fuse && fusion.applies) before_ = &build.shares.at(*fusion.applies);
    if (after_ != nullptr) {
      sum_ = by_channel(2, layer.out.channels);
      squares_ = sum_ + layer.out.channels;
    }
    applies_ = before_ != nullptr;
    plan_forward();
  }

  void plan_backward(Tensor& output) override {
    dy_.plan(output, b_, 1);
    if (applies_) {
      weight_gradient_ = plan_if_any(Direction::norm_weight_gradient,
                                     {dy_.first(), before_->x, before_->scale, before_->shift, filter_gradient()});
      applies_ = weight_gradient_.has_value();
      if (!applies_) plan_forward();  // its result is still needed
    }
    if (!weight_gradient_) {
      weight_gradient_.emplace(b_.cudnn, key(Direction::weight_gradient), Tensors{dy_.first(), x_, filter_gradient()});
    }
    Tensor& input = b_.tensor(layer_.input);
    if (input.needs_gradient) {
      dx_ = b_.gradients.acquire(input.count() * bytes_of(b_.storage()));
      plan_data_gradient();
      input.gradients.push_back(dx_);
    }
    b_.fused += applies_ + sums_ + masks_;
    dy_.release(b_);
  }

  void forward(Mode) override {
    if (sums_) clear(sum_, 2 * layer_.out.channels);
    forward_->run();
    if (layer_.bias) kernels::add_bias(b_.stream, b_.storage(), y_, b_.weight(offsets_[1]), relu_, rows_);
  }

  void backward() override {
    dy_.run(b_);
    weight_gradient_->run_into(filter_gradient());
    const std::size_t count = filter_layout(layer_, 0).stored();
    if (b_.filter_gradient != nullptr) {
      kernels::take_gradient(b_.stream, b_.storage(), b_.filter_gradient, b_.gradient(offsets_[0]), count, b_.step);
    }
    if (layer_.bias) {
      kernels::bias_gradient(b_.stream, b_.storage(), dy_.first(), b_.partials, b_.gradient(offsets_[1]), b_.step,
                             rows_);
    }
    if (masks_) clear(before_->scale_gradient, norm_sums * layer_.in.channels);
    if (data_gradient_) data_gradient_->run();
  }

 private:
  using Tensors = ConvolutionPlan::Tensors;
  static constexpr std::int64_t norm_sums = 5;  // by channel, of Direction::data_gradient_norm

  void plan_forward() {
    forward_.reset();
    if (applies_) {
      forward_ = plan_if_any(Direction::norm_forward_sums,
                             {before_->x, filter(), before_->scale, before_->shift, y_, sum_, squares_});
      applies_ = forward_.has_value();
    }
    if (!applies_) {
      Tensor& input = b_.tensor(layer_.input);
      // Makes a batch norm, which this layer cannot apply after all, write its result.
      if (input.value == nullptr) input.value = b_.allocate(input.count() * bytes_of(input.storage));
      x_ = input.value;
    }
    if (!forward_ && after_ != nullptr) {
      forward_ = plan_if_any(Direction::forward_sums, {x_, filter(), y_, sum_, squares_});
    }
    sums_ = forward_.has_value();
    if (!forward_) forward_.emplace(b_.cudnn, key(Direction::forward), Tensors{x_, filter(), y_});
    if (after_ != nullptr) {
      after_->sum = sums_ ? sum_ : nullptr;
      after_->squares = sums_ ? squares_ : nullptr;
    }
  }

  void plan_data_gradient() {
    if (before_ != nullptr) {
      float* const sums = by_channel(norm_sums, layer_.in.channels);
      const auto sum = [&](std::int64_t i) { return sums + i * layer_.in.channels; };
      data_gradient_ = plan_if_any(Direction::data_gradient_norm,
                                   {dy_.first(), filter(), before_->x, before_->mean, before_->inverse_deviation,
                                    b_.weight(before_->parameters[0]), b_.weight(before_->parameters[1]), dx_, sum(0),
                                    sum(1), sum(2), sum(3), sum(4)});
      masks_ = data_gradient_.has_value();
      if (masks_) {
        before_->scale_gradient = sum(0);
        before_->shift_gradient = sum(1);
        return;
      }
    }
    data_gradient_.emplace(b_.cudnn, key(Direction::data_gradient), Tensors{dy_.first(), filter(), dx_});
  }

  std::optional<ConvolutionPlan> plan_if_any(Direction direction, Tensors tensors) {
    return ConvolutionPlan::if_any(b_.cudnn, key(direction), tensors);
  }

  const void* filter() const { return b_.operand(offsets_[0]); }
  void* filter_gradient() const { return b_.filter_gradient ? b_.filter_gradient : b_.gradient(offsets_[0]); }
  float* by_channel(std::int64_t numbers, std::int64_t channels) {
    return static_cast<float*>(b_.allocate(static_cast<std::size_t>(numbers * channels) * sizeof(float)));
  }
  // cuDNN's documentation does not state whether it overwrites sums or adds to them; cuDNN's own test passes zeros.
  void clear(float* sums, std::int64_t count) {
    PACELINE_CHECK_CUDA(cudaMemsetAsync(sums, 0, static_cast<std::size_t>(count) * sizeof(float), b_.stream));
  }

  PlanKey key(Direction direction) const {
    return {direction,        b_.precision,    b_.winograd,         b_.batch,      filter_layout(layer_, 0).stored_in,
            layer_.in.height, layer_.in.width, layer_.out.channels, layer_.kernel, layer_.stride,
            layer_.padding};
  }

  const bool relu_;
  const std::vector<std::size_t> offsets_;
  const void* x_ = nullptr;
  void *y_ = nullptr, *dx_ = nullptr;
  Rows rows_;
  SummedGradient dy_;
  std::optional<ConvolutionPlan> forward_, data_gradient_, weight_gradient_;

  NormShare *before_ = nullptr, *after_ = nullptr;  // of the batch norms whose work this layer may do
  float *sum_ = nullptr, *squares_ = nullptr;
  bool applies_ = false, sums_ = false, masks_ = false;  // the parts of that work that it does
};

}  // namespace

std::unique_ptr<CudaLayer> make_convolution(const Layer& layer, std::size_t number, const Fusion& fusion,
                                            Build& build) {
  return std::make_unique<CudaConvolution>(layer, number, fusion, build);
}

}  // namespace paceline::train::cuda
