// Every layer of the CPU backend, alone, against the float64 reference: its result, the gradient of its input and
// those of its parameters. The bound on ‖fast − reference‖₂ ÷ ‖reference‖₂ of each operation is in one table.
#include <gtest/gtest.h>

#include "tests/unit/trainer/one_layer.h"

namespace paceline::train {
namespace {

// fp32 has a unit round-off of 6e-8. Sums grow with their length; Winograd's transforms cost another digit.
const Operation operations[]{
    {"stem", {3, 16, 16}, [](Network& n) { return n.convolution("l", 0, 64, 3, 1, false); }, 1e-6},
    {"stem_imagenet", {3, 32, 32}, [](Network& n) { return n.convolution("l", 0, 64, 7, 2, false); }, 1e-6},
    {"convolution_3x3", {64, 16, 16}, [](Network& n) { return n.convolution("l", 0, 64, 3, 1, false); }, 1e-6},
    {"convolution_3x3_bias", {16, 9, 9}, [](Network& n) { return n.convolution("l", 0, 32, 3, 1, true); }, 5e-7},
    {"convolution_3x3_stride", {64, 16, 16}, [](Network& n) { return n.convolution("l", 0, 128, 3, 2, false); }, 5e-7},
    {"convolution_3x3_over_2x2", {64, 2, 2}, [](Network& n) { return n.convolution("l", 0, 64, 3, 1, true); }, 1e-6},
    {"convolution_1x1", {64, 8, 8}, [](Network& n) { return n.convolution("l", 0, 256, 1, 1, false); }, 5e-7},
    {"convolution_1x1_stride", {64, 8, 8}, [](Network& n) { return n.convolution("l", 0, 128, 1, 2, false); }, 5e-7},
    {"winograd", {64, 16, 16}, [](Network& n) { return n.convolution("l", 0, 64, 3, 1, false); }, 5e-6, 8, true},
    {"winograd_bias", {64, 15, 15}, [](Network& n) { return n.convolution("l", 0, 32, 3, 1, true); }, 5e-6, 8, true},
    {"batch_norm", {64, 8, 8}, [](Network& n) { return n.batch_norm("l", 0, false); }, 5e-7},
    {"batch_norm_relu", {64, 8, 8}, [](Network& n) { return n.batch_norm("l", 0, true); }, 5e-7},
    {"batch_norm_frozen", {64, 8, 8}, [](Network& n) { return n.batch_norm("l", 0, false); }, 5e-7, 4, false, true},
    {"batch_norm_relu_frozen", {64, 8, 8}, [](Network& n) { return n.batch_norm("l", 0, true); }, 5e-7, 4, false, true},
    {"relu", {32, 7, 7}, [](Network& n) { return n.relu("l", 0); }, 0},
    {"add_relu", {32, 7, 7}, [](Network& n) { return n.add_relu("l", 0, 0); }, 0},
    {"max_pool", {64, 16, 16}, [](Network& n) { return n.max_pool("l", 0, 3, 2, 1); }, 1e-7},
    {"max_pool_vgg", {64, 16, 16}, [](Network& n) { return n.max_pool("l", 0, 2, 2, 0); }, 0},
    {"average_pool", {512, 4, 4}, [](Network& n) { return n.average_pool("l", 0, 4); }, 2e-7},
    {"linear", {512, 1, 1}, [](Network& n) { return n.linear("l", 0, 10); }, 5e-7},
    {"linear_without_bias", {64, 4, 4}, [](Network& n) { return n.linear("l", 0, 24, false); }, 5e-7},
    {"linear_of_an_image", {64, 7, 7}, [](Network& n) { return n.linear("l", 0, 100); }, 5e-7},
};

class CpuOperation : public testing::TestWithParam<Operation> {};

TEST_P(CpuOperation, AgreesWithTheReference) {
  const Operation& operation = GetParam();
  Alone alone(operation);
  const Layer& layer = alone.layer();
  CpuBuild& build = alone.build();
  const std::int64_t batch = operation.batch;

  Tensor x(batch, layer.in), dy(batch, layer.out);
  x.values = random_values(x.values.size(), 0.2, 1);
  dy.values = random_values(dy.values.size(), 0, 1);
  std::vector<Values> weights;
  for (const CpuParameter& parameter : build.parameters) {
    const std::size_t count = alone.read(parameter.weights).size();
    weights.push_back(random_values(count, parameter.parameter.batch_norm ? 1 : 0, 0.5));
    alone.write(weights.back(), parameter.weights);
  }
  Values bias = weights.size() > 1 ? weights[1] : Values();
  reference::Moments moments = reference::moments(x);
  if (layer.kind == LayerKind::batch_norm) {
    const auto channels = static_cast<std::size_t>(layer.in.channels);
    reference::Moments running{random_values(channels, 0, 0.3), random_values(channels, 2, 0.2)};
    alone.write(running.mean, build.statistics[0]);
    alone.write(running.variance, build.statistics[1]);
    if (operation.frozen) moments = running;
  }
  alone.write(x.values, build.activations[0].value);
  alone.write(dy.values, alone.output_gradient());
  alone.fast().forward(Mode::train);
  const std::vector<float> fast_y = alone.read(build.activations[1].value);
  alone.fast().backward();

  Tensor y, dx;
  std::vector<Values> gradients(2);
  switch (layer.kind) {
    case LayerKind::convolution:
      y = reference::convolution(layer, x, weights[0], bias);
      dx = reference::convolution_backward(layer, x, weights[0], dy, gradients[0], gradients[1]);
      break;
    case LayerKind::batch_norm:
      y = reference::batch_norm(x, moments, weights[0], weights[1]);
      if (layer.relu) {
        y = reference::relu(y);
        dy = reference::relu_backward(y, dy);
      }
      dx = reference::batch_norm_backward(x, moments, operation.frozen, weights[0], dy, gradients[0], gradients[1]);
      break;
    case LayerKind::relu:
      y = reference::relu(x);
      dx = reference::relu_backward(y, dy);
      break;
    case LayerKind::add_relu:
      y = reference::relu(reference::add(x, x));
      dx = reference::relu_backward(y, dy);
      break;
    case LayerKind::max_pool:
      y = reference::max_pool(layer, x);
      dx = reference::max_pool_backward(layer, x, dy);
      break;
    case LayerKind::average_pool:
      y = reference::average_pool(layer, x);
      dx = reference::average_pool_backward(layer, x, dy);
      break;
    default:
      y = reference::linear(layer, x, weights[0], bias);
      dx = reference::linear_backward(layer, x, weights[0], dy, gradients[0], gradients[1]);
  }

  EXPECT_LE(relative_error(fast_y, y.values), operation.bound) << "result";
  ASSERT_FALSE(build.activations[0].gradients.empty());
  for (const dnnl::memory& gradient : build.activations[0].gradients) {
    EXPECT_LE(relative_error(alone.read(gradient), dx.values), operation.bound) << "gradient of the input";
  }
  for (std::size_t i = 0; i < build.parameters.size(); ++i) {
    EXPECT_LE(relative_error(alone.read(build.parameters[i].gradient), gradients[i]), operation.bound)
        << "gradient of " << build.parameters[i].parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CpuOperation, testing::ValuesIn(operations),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(CpuBatchNorm, MovesTheRunningVarianceByTheUnbiasedOne) {
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

TEST(CpuDropout, KeepsTheMeanInTrainingAndEverythingInEvaluation) {
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
