// SPDX-License-Identifier: Apache-2.0
// The batch norms of our own kernels: virtual batches, sums over ranks, statistics of the last batch, every layout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/trainer/backend/cpu/one_layer.h"
#include "trainer/backend/cpu/channel_sums.h"

namespace paceline::train {
namespace {

constexpr double bound = 5e-7;

// Samples [first, first + count) of a tensor.
Tensor part(const Tensor& whole, std::int64_t first, std::int64_t count) {
  Tensor result(count, whole.shape);
  const auto size = static_cast<std::size_t>(whole.shape.size());
  std::copy_n(whole.values.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(first) * size),
              static_cast<std::size_t>(count) * size, result.values.begin());
  return result;
}

// A batch norm on its own, with random tensors, already run forward and backward.
struct Trial {
  Operation operation;
  Alone alone;
  Tensor x, dy;
  Values scale, shift, start_mean, start_variance;
  std::vector<float> y, dx, scale_gradient, shift_gradient;

  Trial(std::int64_t batch, bool relu, const BatchNormOptions& options)
      : operation{"",
                  {24, 5, 5},  // a block of 16 channels and half of one
                  relu ? +[](Network& n) { return n.batch_norm("l", 0, true); }
                       : +[](Network& n) { return n.batch_norm("l", 0, false); },
                  0,
                  batch},
        alone(operation, options),
        x(batch, operation.in),
        dy(batch, operation.in),
        scale(random_values(24, 1, 0.5)),
        shift(random_values(24, 0, 0.5)),
        start_mean(random_values(24, 0, 1)),
        start_variance(random_values(24, 2, 0.3)) {
    x.values = random_values(x.values.size(), 0.2, 1);
    dy.values = random_values(dy.values.size(), 0.1, 1);
    CpuBuild& build = alone.build();
    alone.write(scale, build.parameters[0].weights);
    alone.write(shift, build.parameters[1].weights);
    alone.write(start_mean, build.statistics[0]);
    alone.write(start_variance, build.statistics[1]);
    alone.write(x.values, build.activations[0].value);
    alone.write(dy.values, alone.output_gradient());
    alone.fast().forward(Mode::train);
    y = alone.read(build.activations[1].value);
    alone.fast().backward();
    dx = alone.read(build.activations[0].gradients[0]);
    scale_gradient = alone.read(build.parameters[0].gradient);
    shift_gradient = alone.read(build.parameters[1].gradient);
  }
};

struct GhostCase {
  std::int64_t batch, ghost;
  bool relu;
  friend void PrintTo(const GhostCase& c, std::ostream* out) { *out << c.batch << " in " << c.ghost; }
};

class GhostBatchNorm : public testing::TestWithParam<GhostCase> {};

TEST_P(GhostBatchNorm, IsABatchNormOfEachVirtualBatch) {
  const auto& [batch, ghost, relu] = GetParam();
  BatchNormOptions options;
  options.ghost_batch = ghost;
  Trial trial(batch, relu, options);
  Values y, dx, scale_gradient(24, 0.0), shift_gradient(24, 0.0);
  Values mean = trial.start_mean, variance = trial.start_variance;
  for (std::int64_t first = 0; first < batch; first += ghost) {
    const std::int64_t samples = std::min(ghost, batch - first);
    const Tensor x = part(trial.x, first, samples);
    Tensor dy = part(trial.dy, first, samples);
    const reference::Moments moments = reference::moments(x);
    Tensor of_group = reference::batch_norm(x, moments, trial.scale, trial.shift);
    if (relu) {
      of_group = reference::relu(of_group);
      dy = reference::relu_backward(of_group, dy);
    }
    Values scale_part, shift_part;
    const Tensor dx_part = reference::batch_norm_backward(x, moments, false, trial.scale, dy, scale_part, shift_part);
    y.insert(y.end(), of_group.values.begin(), of_group.values.end());
    dx.insert(dx.end(), dx_part.values.begin(), dx_part.values.end());
    const auto count = static_cast<double>(samples * 25);
    for (std::size_t c = 0; c < 24; ++c) {
      scale_gradient[c] += scale_part[c];
      shift_gradient[c] += shift_part[c];
      mean[c] += 0.1 * (moments.mean[c] - mean[c]);  // once per virtual batch
      variance[c] += 0.1 * (moments.variance[c] * count / (count - 1) - variance[c]);
    }
  }
  EXPECT_LE(relative_error(trial.y, y), bound);
  EXPECT_LE(relative_error(trial.dx, dx), bound);
  EXPECT_LE(relative_error(trial.scale_gradient, scale_gradient), bound);
  EXPECT_LE(relative_error(trial.shift_gradient, shift_gradient), bound);
  EXPECT_LE(relative_error(trial.alone.read(trial.alone.build().statistics[0]), mean), bound);
  EXPECT_LE(relative_error(trial.alone.read(trial.alone.build().statistics[1]), variance), bound);
}

INSTANTIATE_TEST_SUITE_P(All, GhostBatchNorm,
                         testing::Values(GhostCase{8, 2, true}, GhostCase{8, 2, false}, GhostCase{7, 3, true},
                                         GhostCase{4, 16, true}));

TEST(GhostBatchNorm, IsNotTheBatchNormOfTheWholeBatch) {
  BatchNormOptions options;
  options.ghost_batch = 2;
  Trial trial(8, false, options);
  const Tensor whole = reference::batch_norm(trial.x, reference::moments(trial.x), trial.scale, trial.shift);
  EXPECT_GT(relative_error(trial.y, whole.values), 1e-2);
}

// Two ranks with the same samples: the sums double, and so does the count. Then only the unbiased variance differs from
// that of one rank.
TEST(SynchronisedBatchNorm, WithAnEqualTwinIsTheBatchNormOfOneRank) {
  std::vector<std::size_t> lengths;
  BatchNormOptions options;
  options.sum_over_ranks = [&](std::span<double> sums) {
    lengths.push_back(sums.size());
    for (double& sum : sums) sum *= 2;
  };
  Trial trial(4, true, options);
  ASSERT_EQ(lengths, (std::vector<std::size_t>{2 * 32 + 1, 2 * 32})) << "once forward, once backward";
  const reference::Moments moments = reference::moments(trial.x);
  const Tensor y = reference::relu(reference::batch_norm(trial.x, moments, trial.scale, trial.shift));
  Values scale_gradient, shift_gradient;
  const Tensor dx = reference::batch_norm_backward(
      trial.x, moments, false, trial.scale, reference::relu_backward(y, trial.dy), scale_gradient, shift_gradient);
  EXPECT_LE(relative_error(trial.y, y.values), bound);
  EXPECT_LE(relative_error(trial.dx, dx.values), bound);
  EXPECT_LE(relative_error(trial.scale_gradient, scale_gradient), bound) << "of this rank's samples alone";
  EXPECT_LE(relative_error(trial.shift_gradient, shift_gradient), bound);
  Values variance = trial.start_variance;
  for (std::size_t c = 0; c < 24; ++c) variance[c] += 0.1 * (moments.variance[c] * 200 / 199 - variance[c]);
  EXPECT_LE(relative_error(trial.alone.read(trial.alone.build().statistics[1]), variance), bound);
}

TEST(LastBatchStatistics, AreThoseOfTheLastBatchAlone) {
  for (const std::int64_t ghost : {0, 2}) {  // oneDNN's batch norm, and ours, whose last virtual batch counts
    BatchNormOptions options;
    options.momentum = 1;
    options.ghost_batch = ghost;
    Trial trial(4, true, options);
    const Tensor last = ghost == 0 ? trial.x : part(trial.x, 2, 2);
    const reference::Moments moments = reference::moments(last);
    const auto count = static_cast<double>(last.samples * 25);
    Values variance = moments.variance;
    for (double& value : variance) value *= count / (count - 1);
    EXPECT_LE(relative_error(trial.alone.read(trial.alone.build().statistics[0]), moments.mean), 1e-6);
    EXPECT_LE(relative_error(trial.alone.read(trial.alone.build().statistics[1]), variance), 1e-6);
  }
}

TEST(GhostBatchNorm, EvaluatesWithTheRunningStatistics) {
  BatchNormOptions options;
  options.ghost_batch = 2;
  options.momentum = 0;  // they stay as they are
  Trial trial(4, false, options);
  trial.alone.fast().forward(Mode::evaluate);
  const Tensor y = reference::batch_norm(trial.x, {trial.start_mean, trial.start_variance}, trial.scale, trial.shift);
  EXPECT_LE(relative_error(trial.alone.read(trial.alone.build().activations[1].value), y.values), bound);
}

using Tag = dnnl::memory::format_tag;

TEST(ChannelSums, HoldInEveryLayoutThatConvolutionsChoose) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  for (const std::int64_t channels : {3, 16, 20}) {
    for (const Tag tag : {Tag::nchw, Tag::nhwc, Tag::nChw4c, Tag::nChw8c, Tag::nChw16c}) {
      const onednn::Dims dims{4, channels, 3, 5};
      Tensor x(4, {channels, 3, 5});
      x.values = random_values(x.values.size(), 3, 1);
      std::vector<float> plain(x.values.begin(), x.values.end());
      dnnl::memory from(onednn::plain_layout(dims), engine, plain.data());
      dnnl::memory to({dims, dnnl::memory::data_type::f32, tag}, engine);
      dnnl::reorder(from, to).execute(stream, from, to);
      const ChannelLayout layout = channel_layout(to.get_desc());
      EXPECT_EQ(layout.samples * layout.channels() * layout.pixels * sizeof(float), to.get_desc().get_size());
      std::vector<double> sum(layout.channels()), squares(layout.channels());
      kernels::channel_moments(layout, {1, 2}, data(to), sum.data(), squares.data());
      const reference::Moments moments = reference::moments(part(x, 1, 2));
      for (std::size_t c = 0; c < layout.channels(); ++c) {
        const bool filler = c >= static_cast<std::size_t>(channels);
        EXPECT_NEAR(sum[c] / 30, filler ? 0 : moments.mean[c], 1e-12);
        const double mean = sum[c] / 30;
        EXPECT_NEAR(squares[c] / 30 - mean * mean, filler ? 0 : moments.variance[c], 1e-12);
      }
    }
  }
}

TEST(ChannelSums, RefuseAnUnknownLayout) {
  const onednn::Desc swapped({2, 3, 4, 5}, dnnl::memory::data_type::f32, Tag::cdba);
  EXPECT_THROW(channel_layout(swapped), std::logic_error);
}

}  // namespace
}  // namespace paceline::train
