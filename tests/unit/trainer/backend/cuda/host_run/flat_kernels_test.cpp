// SPDX-License-Identifier: Apache-2.0
// A host run of the kernels on flat buffers: the optimizers against those of the CPU, sums and casts against the
// host's. tests/gpu checks them on a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "tests/unit/trainer/backend/cuda/host_run/orders.h"
#include "trainer/backend/cuda/cuda_model.h"
#include "trainer/backend/cuda/flat.h"
#include "trainer/comm/gpu/numbers.h"
#include "trainer/core/cast.h"
#include "trainer/optim/make_optimizer.h"

namespace paceline::train::cuda {
namespace {

class HostRunOfFlatBuffers : public InBothOrders {};
INSTANTIATE_TEST_SUITE_P(All, HostRunOfFlatBuffers, testing::Bool(), order_name);

std::vector<float> random_floats(std::size_t count) {
  static std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

double distance(std::span<const float> a, std::span<const float> b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double{a[i]} - b[i], 2);
    size += double{b[i]} * b[i];
  }
  return std::sqrt(difference / std::max(size, 1e-300));
}

TEST_P(HostRunOfFlatBuffers, OptimizersTakeTheCpusSteps) {
  const std::vector<Parameter> parameters{
      {"a.weight", 0, 20000, {20000}, false}, {"a.bias", 20096, 10, {10}, false}, {"bn.weight", 20224, 64, {64}, true}};
  constexpr std::size_t elements = 20352;
  for (const char* name : {"sgd", "lars", "adam", "adamw", "rmsprop_warmup"}) {
    SCOPED_TRACE(name);
    OptimizerOptions options;
    options.name = name;
    options.weight_decay.rate = 1e-3f;
    options.weight_decay.batch_norm = false;
    options.nesterov = options.name == "sgd";
    options.rate_position = options.name == "sgd" ? "corrected" : "after";
    const auto cpu = make_optimizer(options, parameters, elements),
               gpu = make_cuda_optimizer(options, parameters, elements);
    std::vector<float> expected = random_floats(elements), weights = expected;
    for (const float rate : {0.1f, 0.02f, 0.05f}) {
      const std::vector<float> gradient = random_floats(elements);
      cpu->step(expected, gradient, rate);
      gpu->step(weights, gradient, rate);
      EXPECT_LE(distance(weights, expected), 1e-6);
      ASSERT_EQ(gpu->arrays().size(), cpu->arrays().size());
      for (std::size_t i = 0; i < cpu->arrays().size(); ++i) {
        EXPECT_LE(distance(gpu->arrays()[i], cpu->arrays()[i]), 1e-6);
        gpu->arrays()[i][7] = cpu->arrays()[i][7] = 0.5f;  // which the next step takes
      }
      EXPECT_EQ(gpu->scalars(), cpu->scalars());
    }
  }
}

TEST_P(HostRunOfFlatBuffers, SumsAndQuotientsAreTheHosts) {
  const std::vector<float> from = random_floats(20'003);
  std::vector<float> to = random_floats(from.size()), expected = to;
  flat::add(nullptr, from.data(), to.data(), from.size());
  flat::divide(nullptr, to.data(), to.size(), 3);
  for (std::size_t i = 0; i < from.size(); ++i) expected[i] = (expected[i] + from[i]) / 3;
  EXPECT_EQ(to, expected);
}

TEST_P(HostRunOfFlatBuffers, EachBlockSumsTheSquaresOfItsOwnValues) {
  const std::vector<float> values = random_floats(flat::squares_blocks * 256 + 77);
  std::vector<double> sums(flat::squares_blocks), expected(flat::squares_blocks);
  flat::sum_squares(nullptr, values.data(), values.size(), sums.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    expected[i / 256 % flat::squares_blocks] += double{values[i]} * values[i];
  }
  for (std::size_t block = 0; block < sums.size(); ++block) EXPECT_NEAR(sums[block], expected[block], 1e-9) << block;
}

TEST_P(HostRunOfFlatBuffers, CommunicatorsNumbersAreCastAsOnTheHost) {
  std::vector<float> values = random_floats(5003);
  values[3] = 1e6f, values[5] = 1e-7f, values[7] = -0.0f, values[9] = INFINITY;
  const std::size_t half = values.size() / 2;
  std::vector<std::uint16_t> narrow(values.size()), expected(values.size());
  std::vector<float> wide(values.size()), widened(values.size());
  for (const nccl::Type type : {nccl::Type::f16, nccl::Type::bf16}) {
    const bool f16 = type == nccl::Type::f16;
    nccl::narrow(type, values.data(), values.size(), 3, narrow.data(), nullptr);
    (f16 ? to_half : to_bfloat16)(values, 3, expected.data());
    EXPECT_EQ(narrow, expected);
    nccl::widen(type, narrow.data(), narrow.size(), wide.data(), nullptr);
    (f16 ? from_half : from_bfloat16)(expected.data(), widened);
    EXPECT_EQ(std::memcmp(wide.data(), widened.data(), wide.size() * sizeof(float)), 0);
    nccl::add(type, narrow.data(), narrow.data() + half, half, nullptr);
    (f16 ? add_half : add_bfloat16)(expected.data(), expected.data() + half, half);
    EXPECT_EQ(narrow, expected);
  }
  std::vector<float> sum(values.begin() + 10, values.end()), twice = sum;
  nccl::add(nccl::Type::f32, sum.data(), values.data() + 10, sum.size(), nullptr);
  nccl::divide(sum.data(), sum.size(), 3, nullptr);
  for (float& value : twice) value = (value + value) / 3;
  EXPECT_EQ(sum, twice);
}

}  // namespace
}  // namespace paceline::train::cuda
