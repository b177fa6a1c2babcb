// SPDX-License-Identifier: Apache-2.0
// Batch norm on our own kernels: over the whole batch, over virtual batches (ghost), over all ranks' batch
// (synchronised), or with constants (frozen); alone, with a ReLU, or with the sum and ReLU at the end of a residual
// block. Neighbouring convolutions may do a part of the work (convolution.cpp). cuDNN's batch norms are faster in some
// of these cases, but its persistent ones stall while NCCL occupies multiprocessors, and cuDNN does not cover all
// cases. The formulas: trainer/backend/cpu/batch_norm_variants.cpp and kernels.h.
#include <algorithm>
#include <stdexcept>

#include "trainer/backend/cuda/layers.h"

namespace paceline::train::cuda {
namespace {

class CudaBatchNorm final : public CudaLayer {
 public:
  // output: the layer whose result is written, the batch norm itself or the add_relu behind it.
  CudaBatchNorm(const Layer& norm, std::size_t number, const Layer& output, std::size_t output_number, bool applied,
                Build& build)
      : CudaLayer(output, build),
        input_(norm.input),
        residual_(output.kind == LayerKind::add_relu ? output.residual : -1),
        relu_(residual_ >= 0 || norm.relu),
        channels_(norm.out.channels),
        offsets_(build.parameters[number]),
        statistics_(build.statistics[number]),
        output_(build.tensors[output_number]),
        share_(build.shares[number]) {
    if (channels_ % channel_group != 0) {
      throw std::invalid_argument(norm.name + " has " + std::to_string(channels_) +
                                  " channels; on a GPU it must be a multiple of 4");
    }
    if (applied && build.fuse) {  // if the convolution cannot apply it, the convolution allocates the memory
      share_.scale = build.allocate(static_cast<std::size_t>(channels_) * bytes_of(build.storage()));
      share_.shift = build.allocate(static_cast<std::size_t>(channels_) * bytes_of(build.storage()));
    } else {
      output_.value = build.allocate(output_.count() * bytes_of(output_.storage));
    }
    x_ = static_cast<std::byte*>(build.tensor(input_).value);
    if (residual_ >= 0) extra_ = static_cast<std::byte*>(build.tensor(residual_).value);

    const std::int64_t ghost = build.batch_norm.ghost_batch, batch = build.batch;
    const std::int64_t step = ghost > 0 && !build.freeze_batch_norm ? std::min(ghost, batch) : batch;
    const std::int64_t pixels = norm.out.height * norm.out.width;
    const auto floats = static_cast<std::size_t>(channels_) * sizeof(float);
    const auto doubles = static_cast<std::size_t>(2 * channels_ + 2) * sizeof(double);
    for (std::int64_t first = 0; first < batch; first += step) {
      Group group;
      group.offset = static_cast<std::size_t>(first * pixels * channels_) * bytes_of(build.storage());
      group.rows = {std::min(step, batch - first) * pixels, channels_};
      group.mean = static_cast<float*>(build.allocate(floats));
      group.inverse_deviation = static_cast<float*>(build.allocate(floats));
      group.sums = static_cast<double*>(build.allocate(doubles));
      groups_.push_back(group);
    }
    share_.x = x_;
    share_.mean = groups_[0].mean;
    share_.inverse_deviation = groups_[0].inverse_deviation;
    share_.parameters = offsets_;
    gradient_sums_ = static_cast<double*>(build.allocate(doubles));
    if (build.batch_norm.sum_over_ranks && !build.freeze_batch_norm) host_ = pinned_buffer(doubles);
  }

  void plan_backward(Tensor& output) override {
    dy_.plan(output, b_, 2);
    const std::size_t bytes = output.count() * bytes_of(b_.storage());
    if (residual_ >= 0) {
      // The masked gradient is the residual's gradient too. It is written into a summand that no other layer needs any
      // more, which then has one more owner; else into memory of its own.
      GradientPool& pool = b_.gradients;
      for (void* part : {dy_.second(), dy_.first()}) {
        if (part != nullptr && pool.owners(part) == 1) masked_ = part;
      }
      if (masked_ != nullptr)
        pool.share(masked_);
      else
        masked_ = pool.acquire(bytes);
    }
    dx_ = static_cast<std::byte*>(b_.gradients.acquire(bytes));
    if (residual_ >= 0) b_.tensor(residual_).gradients.push_back(masked_);
    b_.tensor(input_).gradients.push_back(dx_);
    dy_.release(b_);
  }

  void forward(Mode mode) override {
    const bool given = b_.freeze_batch_norm || mode == Mode::evaluate;
    float *const running_mean = b_.flat.statistics + statistics_, *const running_variance = running_mean + stride();
    for (Group& g : groups_) {
      if (given) {
        kernels::use_running_statistics(b_.stream, running_mean, running_variance, channels_, g.mean,
                                        g.inverse_deviation);
      } else {
        if (share_.sum != nullptr)
          kernels::widen_sums(b_.stream, share_.sum, share_.squares, channels_, g.rows.rows, g.sums);
        else
          kernels::channel_moments(b_.stream, b_.storage(), x_ + g.offset, b_.partials, g.sums, g.rows);
        sum_over_ranks(g.sums, 2 * channels_ + 1);
        kernels::set_statistics(b_.stream, g.sums, channels_, b_.batch_norm.momentum, running_mean, running_variance,
                                g.mean, g.inverse_deviation);
      }
      if (output_.value == nullptr) {
        kernels::scale_and_shift(b_.stream, b_.storage(), norm(g), channels_, share_.scale, share_.shift);
      } else {
        kernels::normalise(b_.stream, b_.storage(), x_ + g.offset, at(extra_, g), at(output_.value, g), relu_, norm(g),
                           g.rows);
      }
    }
  }

  void backward() override {
    dy_.run(b_);
    bool add = false;
    const bool summed = share_.scale_gradient != nullptr;  // and masked
    for (const Group& g : groups_) {
      const kernels::NormBackward what{x_ + g.offset,
                                       at(output_.value, g),
                                       at(dy_.first(), g),
                                       at(dy_.second(), g),
                                       at(masked_, g),
                                       !relu_ || summed ? kernels::Mask::none
                                       : residual_ >= 0 ? kernels::Mask::by_output
                                                        : kernels::Mask::by_formula};
      if (summed)
        kernels::widen_sums(b_.stream, share_.shift_gradient, share_.scale_gradient, channels_, -1, gradient_sums_);
      else
        kernels::channel_gradients(b_.stream, b_.storage(), what, b_.partials, gradient_sums_, norm(g), g.rows);
      kernels::norm_parameter_gradients(b_.stream, gradient_sums_, channels_, add, b_.gradient(offsets_[0]),
                                        b_.gradient(offsets_[1]), b_.step);
      if (!b_.freeze_batch_norm) sum_over_ranks(gradient_sums_, 2 * channels_);
      kernels::normalise_backward(b_.stream, b_.storage(), what, b_.freeze_batch_norm ? nullptr : gradient_sums_,
                                  g.sums + 2 * channels_, dx_ + g.offset, norm(g), g.rows);
      add = true;
    }
  }

 private:
  // A virtual batch.
  struct Group {
    std::size_t offset = 0;  // bytes, in every tensor
    Rows rows;
    float *mean = nullptr, *inverse_deviation = nullptr;
    double* sums = nullptr;  // Σx, Σx², count
  };

  // From the running mean to the running variance; as the CPU backend has it, for checkpoints hold both in one piece.
  std::size_t stride() const { return static_cast<std::size_t>(to_multiple(channels_, 16)); }

  template <class Memory>
  static std::byte* at(Memory* memory, const Group& group) {
    return memory == nullptr ? nullptr : static_cast<std::byte*>(static_cast<void*>(memory)) + group.offset;
  }

  kernels::Norm norm(const Group& g) const {
    return {g.mean, g.inverse_deviation, b_.weight(offsets_[0]), b_.weight(offsets_[1])};
  }

  void sum_over_ranks(double* sums, std::int64_t count) {
    if (host_.bytes() == 0) return;
    const auto values = static_cast<std::size_t>(count);
    double* const host = host_.data<double>();
    PACELINE_CHECK_CUDA(cudaMemcpyAsync(host, sums, values * sizeof(double), cudaMemcpyDeviceToHost, b_.stream));
    PACELINE_CHECK_CUDA(cudaStreamSynchronize(b_.stream));
    b_.batch_norm.sum_over_ranks({host, values});
    PACELINE_CHECK_CUDA(cudaMemcpyAsync(sums, host, values * sizeof(double), cudaMemcpyHostToDevice, b_.stream));
    PACELINE_CHECK_CUDA(cudaStreamSynchronize(b_.stream));  // the host's copy is reused
  }

  const int input_, residual_;
  const bool relu_;
  const std::int64_t channels_;
  const std::vector<std::size_t> offsets_;
  const std::size_t statistics_;
  Tensor& output_;  // without a value if a convolution applies this layer
  NormShare& share_;
  std::byte *x_ = nullptr, *extra_ = nullptr, *dx_ = nullptr;
  void* masked_ = nullptr;
  std::vector<Group> groups_;
  double* gradient_sums_ = nullptr;
  Buffer host_;
  SummedGradient dy_;
};

}  // namespace

std::unique_ptr<CudaLayer> make_batch_norm(const Layer& norm, std::size_t number, const Layer& output,
                                           std::size_t output_number, bool applied, Build& build) {
  return std::make_unique<CudaBatchNorm>(norm, number, output, output_number, applied, build);
}

}  // namespace paceline::train::cuda
