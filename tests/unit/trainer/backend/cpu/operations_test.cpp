// SPDX-License-Identifier: Apache-2.0
// Every layer of the CPU backend, alone, against the float64 reference: its result, the gradient of its input and
// those of its parameters. The bound on ‖fast − reference‖₂ ÷ ‖reference‖₂ of each operation is in one table.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/trainer/backend/cpu/one_layer.h"
#include "trainer/backend/cpu/channel_sums.h"
#include "trainer/backend/cpu/kernels.h"

namespace paceline::train {
namespace {

// Values that the operation's type holds exactly, so that both sides compute with the same numbers.
Values representable(Values values, const Operation& operation) {
  if (!operation.bf16) return values;
  for (double& value : values) value = float_from_bfloat16(bfloat16_from_float(static_cast<float>(value)));
  return values;
}

void compare_with_reference(const Operation& operation,
                            dnnl::memory::format_tag image = dnnl::memory::format_tag::any) {
  Alone alone(operation, {}, image);
  const Layer& layer = alone.layer();
  CpuBuild& build = alone.build();
  const std::int64_t batch = operation.batch;

  Tensor x(batch, layer.in), dy(batch, layer.out);
  x.values = representable(random_values(x.values.size(), 0.2, 1), operation);
  dy.values = representable(random_values(dy.values.size(), 0, 1), operation);
  std::vector<Values> weights;
  for (const CpuParameter& parameter : build.parameters) {
    const std::size_t count = alone.read(parameter.weights).size();
    weights.push_back(representable(random_values(count, parameter.parameter.batch_norm ? 1 : 0, 0.5), operation));
    alone.write(weights.back(), parameter.weights);
  }
  reference::Moments moments = reference::moments(x);
  if (layer.kind == LayerKind::batch_norm) {
    const auto channels = static_cast<std::size_t>(layer.in.channels);
    reference::Moments running{random_values(channels, 0, 0.3), random_values(channels, 2, 0.2)};
    alone.write(running.mean, build.statistics[0]);
    alone.write(running.variance, build.statistics[1]);
    if (operation.frozen) moments = running;
  }
  alone.write(x.values, build.activations[0].value);
  alone.fast().forward(Mode::train);
  const std::vector<float> fast_y = alone.read(build.activations[1].value);
  alone.write(dy.values, alone.output_gradient());  // its memory may have been used by forward
  alone.fast().backward();

  const Expected expected = expected_of(layer, x, dy, weights, moments, operation.frozen);
  EXPECT_LE(relative_error(fast_y, expected.y.values), operation.bound) << "result";
  ASSERT_FALSE(build.activations[0].gradients.empty());
  for (const dnnl::memory& gradient : build.activations[0].gradients) {
    EXPECT_LE(relative_error(alone.read(gradient), expected.dx.values), operation.bound) << "gradient of the input";
  }
  for (std::size_t i = 0; i < build.parameters.size(); ++i) {
    EXPECT_LE(relative_error(alone.read(build.parameters[i].gradient), expected.gradients[i]), operation.bound)
        << "gradient of " << build.parameters[i].parameter.name;
  }
}

class CpuOperation : public testing::TestWithParam<Operation> {};

TEST_P(CpuOperation, AgreesWithTheReference) { compare_with_reference(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, CpuOperation, testing::ValuesIn(operations),
                         [](const auto& info) { return std::string(info.param.name); });

// For some of these, oneDNN has only its reference code on each processor. The layer then copies to a layout for which
// there is other code.
TEST(CpuConvolution, OfAnImageInAnyLayoutAgreesWithTheReferenceAndIsNotOneDnnsReferenceCode) {
  using Tag = dnnl::memory::format_tag;
  for (const auto& [name, in, append] : {
           std::tuple{"3x3 of 8", Shape{8, 9, 9}, +[](Network& n) { return n.convolution("l", 0, 8, 3, 1, true); }},
           {"3x3 of 4", Shape{4, 9, 9}, +[](Network& n) { return n.convolution("l", 0, 12, 3, 2, false); }},
           {"1x1 of 20", Shape{20, 6, 6}, +[](Network& n) { return n.convolution("l", 0, 24, 1, 2, false); }},
           {"3x3 of 16", Shape{16, 6, 6}, +[](Network& n) { return n.convolution("l", 0, 32, 3, 1, false); }},
       }) {
    for (const auto& [tag, layout] : {std::pair{Tag::nchw, "nchw"},
                                      {Tag::nhwc, "nhwc"},
                                      {Tag::nChw8c, "nChw8c"},
                                      {Tag::nChw16c, "nChw16c"},
                                      {Tag::any, "any"}}) {
      SCOPED_TRACE(std::string(name) + ", " + layout);
      const Operation operation{name, in, append, 1e-6};
      compare_with_reference(operation, tag);
      Alone alone(operation, {}, tag);
      for (const Implementation& used : alone.fast().implementations()) {
        EXPECT_FALSE(onednn::is_reference(used.name)) << used.computation;
      }
    }
  }
}

// Results and gradients of activations are rounded to 8 bits, by 2^-9 at most; sums are fp32's.
TEST(CpuOperations, InBf16AgreeWithTheReferenceUpToRounding) {
  if (const std::string reason = onednn::why_no_bf16(); !reason.empty()) GTEST_SKIP() << reason;
  for (Operation operation : operations) {
    SCOPED_TRACE(operation.name);
    operation.bf16 = true;
    operation.bound = 0x1p-8;
    compare_with_reference(operation);
  }
}

// oneDNN's code for these wrote beyond its work memory. In plain layouts it does not copy pixels.
TEST(StridedPointConvolutions, WithPartialChannelBlocksUsePlainLayoutsForTheWeightsGradient) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto source_of = [&](std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
    const std::int64_t out = (48 + stride - 1) / stride;
    return onednn::convolution(engine, onednn::any_layout({4, channels, 48, 48}),
                               {2 * channels, channels, kernel, kernel}, false, {4, 2 * channels, out, out},
                               {{kernel, kernel}, {stride, stride}, {kernel / 2, kernel / 2}}, true, false)
        .backward_weights.src_desc();
  };
  for (const std::int64_t channels : {4, 8, 12, 20, 24, 40}) {
    EXPECT_TRUE(onednn::same_layout(source_of(channels, 1, 2), onednn::plain_layout({4, channels, 48, 48})))
        << channels;
  }
  EXPECT_FALSE(onednn::same_layout(source_of(64, 1, 2), onednn::plain_layout({4, 64, 48, 48})))
      << "channels that fill a block keep the fast code";
}

// Each of our kernels on bf16 numbers gives the rounded result of the kernel on fp32 numbers, to the bit.
TEST(CpuKernels, OfBf16ComputeInF32AndRound) {
  constexpr std::size_t count = 3 * 64 * 5;
  const ChannelLayout layout{3, 4, 5, 16};
  const Operation bf16{"", {}, nullptr, 0, 1, false, false, true};
  const auto draw = [&] {
    const Values values = representable(random_values(count, 0, 1), bf16);
    return std::vector<float>(values.begin(), values.end());
  };
  const auto narrow = [](const std::vector<float>& values) {
    std::vector<Bf16> result;
    for (const float value : values) result.push_back({bfloat16_from_float(value)});
    return result;
  };
  const std::vector<float> a = draw(), b = draw(), c = draw();
  const std::vector<float> channels(a.begin(), a.begin() + 64), factors(b.begin(), b.begin() + 64);
  std::vector<double> sums(128), sums16(128);
  std::vector<float> mask(count), mask16(count);
  const std::vector<Bf16> a16 = narrow(a), b16 = narrow(b), c16 = narrow(c);
  // work(a, b, c, out, sums, mask) fills `out`, which contains c before.
  const auto same = [&](const char* what, auto work) {
    std::vector<float> out = c;
    std::vector<Bf16> out16 = c16;
    work(a.data(), b.data(), c.data(), out.data(), sums.data(), mask.data());
    work(a16.data(), b16.data(), c16.data(), out16.data(), sums16.data(), mask16.data());
    const std::vector<Bf16> expected = narrow(out);
    EXPECT_EQ(std::memcmp(out16.data(), expected.data(), count * sizeof(Bf16)), 0) << what;
    EXPECT_NE(std::memcmp(out16.data(), c16.data(), count * sizeof(Bf16)), 0) << what << " did nothing";
  };
  using namespace kernels;
  same("relu", [&](auto* x, auto*, auto*, auto* y, double*, float*) { relu(x, y, count); });
  same("add_relu", [&](auto* x, auto* z, auto*, auto* y, double*, float*) { add_relu(x, z, y, count); });
  same("relu_backward", [&](auto* x, auto*, auto*, auto* y, double*, float*) { relu_backward(x, y, count); });
  same("two", [&](auto* x, auto* z, auto*, auto* y, double*, float*) { relu_backward(x, z, y, count); });
  same("add_to", [&](auto* x, auto*, auto*, auto* y, double*, float*) { add_to(x, y, count); });
  same("dropout", [&](auto* x, auto*, auto*, auto* y, double*, float* m) { dropout(x, m, y, count, 0.3f, 7); });
  same("multiply", [&](auto*, auto*, auto*, auto* y, double*, float* m) { multiply(m, y, count); });
  same("normalise", [&](auto* x, auto*, auto*, auto* y, double* s, float*) {
    channel_moments(layout, {0, 3}, x, s, s + 64);
    normalise(layout, {0, 3}, x, channels.data(), factors.data(), channels.data(), true, y);
  });
  EXPECT_EQ(sums, sums16);
  same("normalise_backward", [&](auto* x, auto* z, auto* dy, auto* dx, double* s, float*) {
    channel_gradients(layout, {0, 3}, x, z, dy, channels.data(), factors.data(), s, s + 64);
    normalise_backward(layout, {0, 3}, x, z, dy, channels.data(), factors.data(), factors.data(), channels.data(), dx);
  });
  EXPECT_EQ(sums, sums16);
  EXPECT_TRUE(all_finite(a16.data(), count));
  std::vector<Bf16> infinite = a16;
  infinite.back().bits = 0x7f80;
  EXPECT_FALSE(all_finite(infinite.data(), count));
}

TEST(CpuBatchNorm, UpdatesTheRunningVarianceWithTheUnbiasedOne) {
  const Operation operation{"", {16, 2, 2}, [](Network& n) { return n.batch_norm("l", 0, true); }, 0};
  Alone alone(operation);
  Tensor x(operation.batch, operation.in);
  x.values = random_values(x.values.size(), 1, 2);
  alone.write(x.values, alone.build().activations[0].value);
  alone.write(Values(16, 0.0), alone.build().statistics[0]);
  alone.write(Values(16, 1.0), alone.build().statistics[1]);
  alone.fast().forward(Mode::train);

  const reference::Moments batch = reference::moments(x);
  const std::vector<float> mean = alone.read(alone.build().statistics[0]);
  const std::vector<float> variance = alone.read(alone.build().statistics[1]);
  for (std::size_t c = 0; c < 16; ++c) {
    EXPECT_NEAR(mean[c], 0.1 * batch.mean[c], 1e-6);
    EXPECT_NEAR(variance[c], 0.9 + 0.1 * batch.variance[c] * 16 / 15, 1e-6);
  }
}

TEST(CpuDropout, KeepsTheMeanInTrainingAndAllValuesInEvaluation) {
  const Operation operation{"", {4096, 1, 1}, [](Network& n) { return n.dropout("l", 0, 0.25f); }, 0};
  Alone alone(operation);
  const std::size_t count = 4 * 4096;
  alone.write(Values(count, 3.0), alone.build().activations[0].value);
  alone.write(Values(count, 5.0), alone.output_gradient());
  alone.fast().forward(Mode::train);
  const std::vector<float> y = alone.read(alone.build().activations[1].value);
  alone.fast().backward();
  const std::vector<float> dx = alone.read(alone.build().activations[0].gradients[0]);
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (y[i] == 0) {
      ++dropped;
      EXPECT_EQ(dx[i], 0);
    } else {
      EXPECT_FLOAT_EQ(y[i], 4);
      EXPECT_FLOAT_EQ(dx[i], 5 / 0.75f);
    }
  }
  EXPECT_NEAR(static_cast<double>(dropped) / static_cast<double>(count), 0.25, 4 * std::sqrt(0.25 * 0.75 / 16384));
  alone.fast().forward(Mode::evaluate);
  for (const float value : alone.read(alone.build().activations[1].value)) EXPECT_EQ(value, 3);
}

}  // namespace
}  // namespace paceline::train
