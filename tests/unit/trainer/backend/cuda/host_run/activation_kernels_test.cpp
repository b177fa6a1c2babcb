// SPDX-License-Identifier: Apache-2.0
// A host run of the kernels on activations and of the loss, against the float64 reference in every storage. tests/gpu
// checks them on a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/trainer/backend/cuda/host_run/orders.h"
#include "tests/unit/trainer/backend/operations.h"
#include "trainer/backend/cuda/kernels.h"
#include "trainer/core/cast.h"

namespace paceline::train::cuda {
namespace {

constexpr Storage storages[]{Storage::f32, Storage::bf16, Storage::f16};

// The bound of one rounding of the result to the storage; sums are wider.
double bound_of(Storage storage) { return storage == Storage::f32 ? 1e-6 : storage == Storage::bf16 ? 4e-3 : 5e-4; }

class HostRunOfActivations : public InBothOrders {};
INSTANTIATE_TEST_SUITE_P(All, HostRunOfActivations, testing::Bool(), order_name);

// An activation in the GPU's layout.
struct Activation {
  Storage storage;
  Shape shape;
  std::int64_t samples;
  std::vector<std::uint32_t> memory;

  Activation(Storage in, const Shape& of, std::int64_t count)
      : storage(in), shape(of), samples(count), memory(static_cast<std::size_t>(count * of.size()) + 4) {}
  Activation(Storage in, const Tensor& values) : Activation(in, values.shape, values.samples) {
    const std::vector<float> planes(values.values.begin(), values.values.end());
    kernels::planes_to_rows(nullptr, storage, planes.data(), data(), samples, shape.channels, shape.channels,
                            shape.height * shape.width);
  }
  void* data() { return memory.data(); }
  Rows rows() const { return {samples * shape.height * shape.width, shape.channels}; }
  std::size_t count() const { return static_cast<std::size_t>(samples * shape.size()); }

  Tensor tensor() {
    Step step;
    std::vector<float> wide(count() + 4);
    kernels::take_gradient(nullptr, storage, data(), wide.data(), count(), &step);
    Tensor result(samples, shape);
    const std::int64_t pixels = shape.height * shape.width;
    for (std::size_t i = 0; i < count(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t p = at % pixels, c = at / pixels % shape.channels, n = at / (pixels * shape.channels);
      result.values[i] = wide[static_cast<std::size_t>((n * pixels + p) * shape.channels + c)];
    }
    return result;
  }
};

// Random values that the storage holds exactly.
Tensor random_tensor(Storage storage, std::int64_t samples, const Shape& shape) {
  Tensor tensor(samples, shape);
  tensor.values = random_values(tensor.values.size(), 0.2, 1);
  return Activation(storage, tensor).tensor();
}

TEST_P(HostRunOfActivations, NormaliseAndItsGradientsAgreeWithTheReference) {
  constexpr std::int64_t channels = 20, samples = 3;  // 11 of the last 16 threads of a row have no work
  const Shape shape{channels, 7, 7};
  for (const Storage storage : storages) {
    for (const bool relu : {false, true}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(storage) << (relu ? " relu" : ""));
      const Tensor x = random_tensor(storage, samples, shape), dy = random_tensor(storage, samples, shape);
      const Values scale = random_values(channels, 1, 0.5), shift = random_values(channels, 0, 0.5);
      Network net(shape);
      net.batch_norm("l", 0, relu);
      const reference::Moments moments = reference::moments(x);
      const Expected expected = expected_of(net.layers()[1], x, dy, {scale, shift}, moments, false);

      Activation in(storage, x), gradient(storage, dy), out(storage, shape, samples), dx(storage, shape, samples);
      const std::vector<float> gamma(scale.begin(), scale.end()), beta(shift.begin(), shift.end());
      std::vector<double> partials(partial_sum_bytes(channels) / sizeof(double)), sums(2 * channels + 1);
      std::vector<float> running_mean(channels, 1), running_variance(channels, 1), mean(channels), inverse(channels),
          of_scale(channels), of_shift(channels);
      kernels::channel_moments(nullptr, storage, in.data(), partials.data(), sums.data(), in.rows());
      EXPECT_EQ(sums.back(), 3 * 49);
      kernels::set_statistics(nullptr, sums.data(), channels, 0.25f, running_mean.data(), running_variance.data(),
                              mean.data(), inverse.data());
      const kernels::Norm norm{mean.data(), inverse.data(), gamma.data(), beta.data()};
      kernels::normalise(nullptr, storage, in.data(), nullptr, out.data(), relu, norm, in.rows());
      for (std::size_t c = 0; c < channels; ++c) {
        EXPECT_NEAR(running_mean[c], 0.75 + 0.25 * moments.mean[c], 1e-6);
        EXPECT_NEAR(running_variance[c], 0.75 + 0.25 * moments.variance[c] * 147 / 146, 1e-6);
      }
      EXPECT_LE(relative_error(out.tensor().values, expected.y.values), bound_of(storage));

      Step step;
      const kernels::NormBackward what{in.data(), nullptr, gradient.data(),
                                       nullptr,   nullptr, relu ? kernels::Mask::by_formula : kernels::Mask::none};
      std::vector<double> products(2 * channels);
      kernels::channel_gradients(nullptr, storage, what, partials.data(), products.data(), norm, in.rows());
      kernels::norm_parameter_gradients(nullptr, products.data(), channels, false, of_scale.data(), of_shift.data(),
                                        &step);
      kernels::normalise_backward(nullptr, storage, what, products.data(), &sums.back(), dx.data(), norm, in.rows());
      EXPECT_EQ(step.overflow, 0u);
      EXPECT_LE(relative_error(of_scale, expected.gradients[0]), 1e-5);
      EXPECT_LE(relative_error(of_shift, expected.gradients[1]), 1e-5);
      EXPECT_LE(relative_error(dx.tensor().values, expected.dx.values), bound_of(storage));

      // The same after a convolution's part of the work: fp32 sums, and a gradient that is masked already.
      std::vector<float> first(channels), second(channels);
      for (std::size_t c = 0; c < channels; ++c) {
        first[c] = static_cast<float>(products[c]);
        second[c] = static_cast<float>(products[channels + c]);
      }
      std::vector<double> widened(2 * channels + 1, -1);
      kernels::widen_sums(nullptr, first.data(), second.data(), channels, -1, widened.data());
      EXPECT_EQ(widened.back(), -1);
      const Tensor masked = relu ? reference::relu_backward(expected.y, dy) : dy;
      Activation other(storage, masked), again(storage, shape, samples);
      kernels::normalise_backward(nullptr, storage,
                                  {in.data(), nullptr, other.data(), nullptr, nullptr, kernels::Mask::none},
                                  widened.data(), &sums.back(), again.data(), norm, in.rows());
      EXPECT_LE(relative_error(again.tensor().values, expected.dx.values), bound_of(storage));
      kernels::widen_sums(nullptr, first.data(), second.data(), channels, 147, widened.data());
      EXPECT_EQ(widened.back(), 147);
      EXPECT_EQ(widened[channels + 3], second[3]);
    }
  }
}

// The factors of a fused convolution: y = max(0, scale × x + shift), both with 11 bits.
TEST_P(HostRunOfActivations, FactorAndSummandEqualTheBatchNormUpToRounding) {
  const std::vector<float> mean{100, -3, 0, 0.5f}, inverse{0.5f, 0.3f, 2, 1}, gamma{1.1f, 0.7f, 1.3f, 1},
      beta{0.1f, 0, -1, 2};
  std::uint16_t scale[4], shift[4];
  kernels::scale_and_shift(nullptr, Storage::f16, {mean.data(), inverse.data(), gamma.data(), beta.data()}, 4, scale,
                           shift);
  for (std::size_t c = 0; c < 4; ++c) {
    const float factor = float_from_half(scale[c]), summand = float_from_half(shift[c]);
    EXPECT_NEAR(factor, inverse[c] * gamma[c], std::ldexp(inverse[c] * gamma[c], -11));
    const float exact =
        beta[c] - mean[c] * factor;  // so that the mean becomes the shift in spite of the factor's rounding
    EXPECT_NEAR(summand, exact, std::ldexp(std::abs(exact), -11));
  }
}

TEST_P(HostRunOfActivations, BiasesReluAndPoolingAgreeWithTheReference) {
  for (const Storage storage : storages) {
    const Shape shape{24, 11, 11};
    const Tensor x = random_tensor(storage, 3, shape), dy = random_tensor(storage, 3, shape);
    Activation in(storage, x), gradient(storage, dy), out(storage, shape, 3);
    kernels::add_relu(nullptr, storage, in.data(), gradient.data(), out.data(), in.count());
    EXPECT_LE(relative_error(out.tensor().values, reference::relu(reference::add(x, dy)).values), bound_of(storage));
    kernels::relu_backward(nullptr, storage, in.data(), gradient.data(), gradient.data(), out.data(), in.count());
    const Tensor twice = reference::relu_backward(reference::relu(x), reference::add(dy, dy));
    EXPECT_LE(relative_error(out.tensor().values, twice.values), bound_of(storage));

    const std::vector<float> bias(24, 0.25f);
    std::vector<double> partials(partial_sum_bytes(24) / sizeof(double));
    std::vector<float> of_bias(24);
    Step step;
    step.unscale = 0.5f;
    kernels::bias_gradient(nullptr, storage, gradient.data(), partials.data(), of_bias.data(), &step, gradient.rows());
    Values expected(24, 0.0);
    for (std::size_t i = 0; i < dy.values.size(); ++i) expected[i / 121 % 24] += 0.5 * dy.values[i];
    EXPECT_LE(relative_error(of_bias, expected), 1e-6);
    kernels::add_bias(nullptr, storage, in.data(), bias.data(), true, in.rows());
    Tensor biased = x;
    for (double& value : biased.values) value += 0.25;
    EXPECT_LE(relative_error(in.tensor().values, reference::relu(biased).values), bound_of(storage));

    Network net(shape);
    net.average_pool("a", net.max_pool("m", 0, 3, 2, 1), 2);
    const Layer &most = net.layers()[1], &average = net.layers()[2];
    const auto pool_of = [&](const Layer& layer) {
      return kernels::Pool{3,
                           24,
                           layer.in.height,
                           layer.in.width,
                           layer.out.height,
                           layer.out.width,
                           layer.kernel,
                           layer.stride,
                           layer.padding};
    };
    const Tensor pooled = reference::max_pool(most, x), d = random_tensor(storage, 3, average.out);
    Activation from(storage, x), maxima(storage, most.out, 3), means(storage, average.out, 3), back(storage, d),
        middle(storage, most.out, 3), first(storage, shape, 3);
    std::vector<std::uint8_t> where(maxima.count());
    kernels::max_pool(nullptr, storage, from.data(), maxima.data(), where.data(), pool_of(most));
    EXPECT_EQ(maxima.tensor().values, pooled.values);
    kernels::average_pool(nullptr, storage, maxima.data(), means.data(), pool_of(average));
    EXPECT_LE(relative_error(means.tensor().values, reference::average_pool(average, pooled).values),
              bound_of(storage));
    kernels::average_pool_backward(nullptr, storage, back.data(), middle.data(), pool_of(average));
    kernels::max_pool_backward(nullptr, storage, middle.data(), where.data(), first.data(), pool_of(most));
    const Tensor of_middle = reference::average_pool_backward(average, pooled, d);
    EXPECT_LE(relative_error(first.tensor().values, reference::max_pool_backward(most, x, of_middle).values),
              2 * bound_of(storage));
  }
}

TEST_P(HostRunOfActivations, ConvertBytesToRowsAndMarkAnOverflow) {
  const std::vector<std::uint8_t> planes{0, 10, 20, 30, 40, 50, 60, 70};  // a sample of two channels of 2 × 2 pixels
  const ImageCut cut{1, 0, 1};                                            // from (1 − x) + 1
  const kernels::ByteImages images{planes.data(), &cut, {10, 0}, {0.5f, 0.25f}, 1, 2, 2};
  std::vector<float> rows(4 * 4, -1);
  kernels::bytes_to_rows(nullptr, Storage::f32, images, rows.data(), 4);
  EXPECT_EQ(rows, (std::vector<float>{0, 0, 0, 0, 0, 12.5f, 0, 0, 0, 0, 0, 0, 10, 17.5f, 0, 0}));

  for (const Storage storage : storages) {
    std::vector<float> values(8, 3), taken(8);
    Activation narrow(storage, {8, 1, 1}, 1);
    Step step;
    step.unscale = 0.5f;
    kernels::narrow(nullptr, storage, values.data(), narrow.data(), 8);
    kernels::take_gradient(nullptr, storage, narrow.data(), taken.data(), 8, &step);
    EXPECT_EQ(taken, std::vector<float>(8, 1.5f));
    EXPECT_EQ(step.overflow, 0u);
    values[5] = 1e5f;  // beyond fp16
    kernels::narrow(nullptr, storage, values.data(), narrow.data(), 8);
    kernels::take_gradient(nullptr, storage, narrow.data(), taken.data(), 8, &step);
    EXPECT_EQ(step.overflow, storage == Storage::f16 ? 1u : 0u);
  }
}

TEST_P(HostRunOfActivations, DropoutKeepsTheMeanAndNamesItsMaskByStepAndLayer) {
  constexpr std::size_t count = 4096;
  std::vector<float> ones(count, 1), first(count), again(count), other(count);
  Step step;
  step.dropout = 7;
  kernels::dropout(nullptr, Storage::f32, ones.data(), first.data(), count, 0.25f, 1, &step);
  kernels::dropout(nullptr, Storage::f32, ones.data(), again.data(), count, 0.25f, 1, &step);
  kernels::dropout(nullptr, Storage::f32, ones.data(), other.data(), count, 0.25f, 2, &step);
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
  std::size_t kept = 0;
  for (const float value : first) {
    ASSERT_TRUE(value == 0 || value == 1 / 0.75f);
    kept += value != 0;
  }
  EXPECT_NEAR(static_cast<double>(kept) / count, 0.75, 5 * std::sqrt(0.25 * 0.75 / count));
}

TEST_P(HostRunOfActivations, FindNonfiniteMarksWhatIsNotFinite) {
  for (const float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1.0f}) {
    std::vector<float> values(1024);
    values[1023] = value;
    unsigned flag = 0;
    kernels::find_nonfinite(nullptr, Storage::f32, values.data(), values.size(), &flag);
    EXPECT_EQ(flag, std::isfinite(value) ? 0u : 1u);
  }
}

TEST_P(HostRunOfActivations, FrozenBatchNormsTakeTheRunningStatistics) {
  const std::vector<float> running_mean{1, -2, 0, 5}, running_variance{4, 0.25f, 0, 1};
  std::vector<float> mean(4), inverse(4);
  kernels::use_running_statistics(nullptr, running_mean.data(), running_variance.data(), 4, mean.data(),
                                  inverse.data());
  EXPECT_EQ(mean, running_mean);
  for (std::size_t c = 0; c < 4; ++c) EXPECT_NEAR(inverse[c] * std::sqrt(running_variance[c] + 1e-5), 1, 1e-6);
}

// Rows longer and shorter than a block has threads, and two equal logits, of which the first counts.
TEST_P(HostRunOfActivations, LossScoreAndGradientAgreeWithTheReference) {
  for (const std::int64_t classes : {8, 132, 1000}) {
    for (const double smoothing : {0.0, 0.1}) {
      SCOPED_TRACE(testing::Message() << classes << " classes, smoothing " << smoothing);
      constexpr std::int64_t samples = 5;
      Tensor logits(samples, {classes, 1, 1});
      logits.values = random_values(logits.values.size(), 0, 3);
      std::vector<std::int32_t> labels;
      double correct = 0, in_top_5 = 0, smoothed = 0;
      for (std::int64_t n = 0; n < samples; ++n) {
        const auto row = logits.values.begin() + n * classes;
        if (n == 1) row[classes - 1] = row[classes / 2] = 20;
        const auto top = std::max_element(row, row + classes) - row;
        labels.push_back(static_cast<std::int32_t>(n % 2 == 0 ? 3 : top));
        correct += labels.back() == top;
        in_top_5 += std::count_if(row, row + classes, [&](double logit) { return logit > row[labels.back()]; }) < 5;
        for (std::int64_t c = 0; c < classes; ++c) smoothed += row[labels.back()] - row[c];
      }
      const double loss =
          reference::cross_entropy(logits, labels) + smoothing * smoothed / static_cast<double>(classes);
      const std::vector<float> narrow(logits.values.begin(), logits.values.end());
      std::vector<double> losses(3 * samples);
      BatchScore score;
      kernels::cross_entropy(nullptr, narrow.data(), labels.data(), samples, classes, smoothing, losses.data(), &score);
      EXPECT_NEAR(score.loss_sum, loss, 1e-9 * loss);
      EXPECT_EQ(static_cast<double>(score.correct), correct);
      EXPECT_EQ(static_cast<double>(score.in_top_5), in_top_5);

      Step step;
      step.loss_gradient = 0.5f;
      Tensor expected = reference::cross_entropy_backward(logits, labels, 0.5);
      for (std::int64_t n = 0; n < samples; ++n) {
        for (std::int64_t c = 0; c < classes; ++c) {
          const double label = c == labels[static_cast<std::size_t>(n)] ? 1 : 0;
          expected.at(n, c, 0, 0) += 0.5 * smoothing * (label - 1 / static_cast<double>(classes));
        }
      }
      for (const Storage storage : storages) {
        Activation gradient(storage, expected.shape, samples);
        kernels::cross_entropy_backward(nullptr, storage, narrow.data(), labels.data(), samples, classes, smoothing,
                                        &step, gradient.data());
        EXPECT_LE(relative_error(gradient.tensor().values, expected.values), bound_of(storage));
      }
    }
  }
}

TEST_P(HostRunOfActivations, BiasGradientsOfLinearLayersAreSumsOverTheSamples) {
  constexpr std::size_t outputs = 42, samples = 19;  // neither fills its blocks
  for (const Storage storage : storages) {
    std::vector<float> wide(outputs * samples + 2, 0.5f), gradient(outputs);
    for (std::size_t i = 0; i < outputs * samples; ++i) wide[i] = static_cast<float>(i % 13) - 4;
    Activation dy(storage, {static_cast<std::int64_t>(outputs * samples + 2), 1, 1}, 1);
    kernels::narrow(nullptr, storage, wide.data(), dy.data(), wide.size());
    Step step;
    step.unscale = 0.25f;
    kernels::linear_bias_gradient(nullptr, storage, dy.data(), gradient.data(), &step, samples, outputs);
    for (std::size_t o = 0; o < outputs; ++o) {
      float sum = 0;
      for (std::size_t n = 0; n < samples; ++n) sum += wide[n * outputs + o];
      EXPECT_EQ(gradient[o], sum * 0.25f);
    }
    EXPECT_EQ(step.overflow, 0u);
  }
}

}  // namespace
}  // namespace paceline::train::cuda
