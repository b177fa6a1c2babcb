// Every layer of the CPU backend, alone, against the float64 reference: its result, the gradient of its input and
// those of its parameters. The bound on ‖fast − reference‖₂ ÷ ‖reference‖₂ of each operation is in one table.
#include <gtest/gtest.h>

#include "tests/unit/trainer/one_layer.h"

namespace paceline::train {
namespace {

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
