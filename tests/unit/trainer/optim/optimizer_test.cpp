// SPDX-License-Identifier: Apache-2.0
// Every optimizer against its formula in float64, on tensors longer than one thread's chunk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "trainer/optim/adam.h"
#include "trainer/optim/lars.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/rmsprop_warmup.h"
#include "trainer/optim/sgd.h"

namespace paceline::train {
namespace {

constexpr std::size_t count = 40001;  // more than two chunks, and no multiple of a vector

// Weights, gradients and the float64 results. Rates jump as in a step schedule.
struct Problem {
  std::mt19937 random{1};
  std::normal_distribution<float> normal;
  std::vector<float> w = std::vector<float>(count), g = std::vector<float>(count);
  std::vector<double> expected;

  Problem() {
    for (float& value : w) value = normal(random);
    expected.assign(w.begin(), w.end());
  }
  void next_gradient() {
    for (float& value : g) value = normal(random);
  }
  void expect_equal(double bound) const {
    for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(w[i], expected[i], bound) << i;
  }
};

const std::vector<float> rates{0.05f, 0.1f, 0.1f, 0.01f, 0.01f, 0.02f};

const std::vector<Parameter> one_parameter{{"all.weight", 0, count, {40001}, false}};

struct SgdForm {
  const char* position;
  bool nesterov;
  friend void PrintTo(const SgdForm& form, std::ostream* out) { *out << form.position << form.nesterov; }
};

class SgdFormula : public testing::TestWithParam<SgdForm> {};

TEST_P(SgdFormula, HoldsForEveryElementWhileTheRateJumps) {
  const auto& [position, nesterov] = GetParam();
  const double m = 0.9, decay = 5e-4;
  Problem p;
  std::vector<double> v(count, 0.0);
  Sgd sgd(count, {0.9f, 5e-4f, nesterov, rate_position_of(position)});
  double before = 0;
  for (const float rate : rates) {
    p.next_gradient();
    sgd.step(p.w, p.g, rate);
    const double correction = std::string(position) == "corrected" && before > 0 ? rate / before : 1;
    const bool after = std::string(position) == "after";
    for (std::size_t i = 0; i < count; ++i) {
      const double g = p.g[i] + decay * p.expected[i];
      v[i] = m * correction * v[i] + (after ? 1 : rate) * g;
      const double of_velocity = after ? rate * v[i] : v[i];
      p.expected[i] -= nesterov ? rate * g + m * of_velocity : of_velocity;
    }
    before = rate;
  }
  p.expect_equal(3e-6);
}

INSTANTIATE_TEST_SUITE_P(All, SgdFormula,
                         testing::Values(SgdForm{"after", false}, SgdForm{"after", true}, SgdForm{"inside", false},
                                         SgdForm{"inside", true}, SgdForm{"corrected", false},
                                         SgdForm{"corrected", true}),
                         [](const auto& info) {
                           return std::string(info.param.position) + (info.param.nesterov ? "_nesterov" : "");
                         });

// Goyal et al., section 3: with the rate inside v, momentum must be corrected when the rate jumps.
TEST(Sgd, WithCorrectionTheRateInsideTakesTheStepsOfTheRateAfter) {
  Problem after, corrected, inside;
  Sgd a(count, {0.9f, 1e-4f, false, RatePosition::after});
  Sgd c(count, {0.9f, 1e-4f, false, RatePosition::corrected});
  Sgd i(count, {0.9f, 1e-4f, false, RatePosition::inside});
  for (const float rate : {0.1f, 0.1f, 0.1f}) {
    for (Problem* p : {&after, &corrected, &inside}) p->next_gradient();
    a.step(after.w, after.g, rate);
    c.step(corrected.w, corrected.g, rate);
    i.step(inside.w, inside.g, rate);
  }
  for (std::size_t k = 0; k < count; ++k) ASSERT_NEAR(inside.w[k], after.w[k], 2e-6) << "before the jump";
  for (const float rate : {0.8f, 0.8f, 0.01f, 0.01f}) {
    for (Problem* p : {&after, &corrected, &inside}) p->next_gradient();
    a.step(after.w, after.g, rate);
    c.step(corrected.w, corrected.g, rate);
    i.step(inside.w, inside.g, rate);
  }
  double largest = 0;
  for (std::size_t k = 0; k < count; ++k) {
    ASSERT_NEAR(corrected.w[k], after.w[k], 2e-5) << k;
    largest = std::max(largest, std::abs(static_cast<double>(inside.w[k]) - after.w[k]));
  }
  EXPECT_GT(largest, 0.1) << "uncorrected momentum takes other steps";
}

TEST(Sgd, ARateOfZeroDoesNotSpoilTheCorrection) {
  Sgd sgd(1, {0.9f, 0, false, RatePosition::corrected});
  std::vector<float> w{1}, g{1};
  for (const float rate : {0.1f, 0.0f, 0.1f}) sgd.step(w, g, rate);
  EXPECT_TRUE(std::isfinite(w[0]));
}

TEST(Optimizer, RefusesArraysOfADifferentSize) {
  Sgd sgd(8, {});
  std::vector<float> w(8), g(7);
  EXPECT_THROW(sgd.step(w, g, 0.1f), std::invalid_argument);
}

// Three parameters with padding after the second.
const std::vector<Parameter> three{
    {"conv.weight", 0, 20000, {20000}, false}, {"bn.bias", 20000, 3, {3}, true}, {"fc.bias", 20016, 10, {10}, false}};

TEST(WeightDecay, LeavesOutBatchNormsAndBiasesOnRequest) {
  for (const bool batch_norm : {true, false}) {
    for (const bool biases : {true, false}) {
      OptimizerOptions options;
      options.weight_decay = {0.5f, batch_norm, biases};
      options.momentum = 0;
      const auto optimizer = make_optimizer(options, three, 20032);
      std::vector<float> w(20032, 1.0f), g(20032, 0.0f);
      optimizer->step(w, g, 0.1f);
      EXPECT_FLOAT_EQ(w[0], 0.95f);
      EXPECT_FLOAT_EQ(w[19999], 0.95f);
      EXPECT_FLOAT_EQ(w[20002], batch_norm ? 0.95f : 1.0f);
      EXPECT_FLOAT_EQ(w[20016], biases ? 0.95f : 1.0f);
    }
  }
}

TEST(Optimizers, LeaveFrozenParametersAsTheyAre) {
  for (const std::string& name : optimizer_names()) {
    OptimizerOptions options;
    options.name = name;
    options.weight_decay = {0.5f, true, true};
    options.frozen = {three[1].name, three[2].name.substr(0, three[2].name.size() - 1)};
    const auto optimizer = make_optimizer(options, three, 20032);
    std::vector<float> w(20032, 1.0f), g(20032, 1.0f);
    for (int step = 0; step < 3; ++step) optimizer->step(w, g, 0.1f);
    EXPECT_NE(w[0], 1.0f) << name;
    for (std::size_t i = three[1].offset; i < w.size(); ++i) ASSERT_EQ(w[i], 1.0f) << name << ' ' << i;
  }
}

TEST(Chunks, CoverEveryElementOnce) {
  const std::vector<Chunk> chunks = chunks_of(three, 20032, {});
  std::size_t next = 0;
  for (const Chunk& chunk : chunks) {
    EXPECT_EQ(chunk.first, next);
    EXPECT_LE(chunk.count, 16384u);
    next += chunk.count;
  }
  EXPECT_EQ(next, 20032u);
  EXPECT_THAT(chunks, testing::SizeIs(4));
}

// Algorithm 1 of the paper, layer by layer.
TEST(Lars, FollowsItsFormulaForEveryTensor) {
  const double m = 0.9, decay = 1e-3, trust = 0.01;
  OptimizerOptions options;
  options.name = "lars";
  options.weight_decay = {static_cast<float>(decay), false, true};
  options.trust = trust;
  const auto optimizer = make_optimizer(options, three, 20032);
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> w(20032, 0.0f), g(20032, 0.0f);
  for (const Parameter& p : three) {
    for (std::size_t i = 0; i < p.size; ++i) w[p.offset + i] = normal(random);
  }
  std::vector<double> expected(w.begin(), w.end()), v(w.size(), 0.0);
  for (const float rate : {2.0f, 4.0f, 1.0f}) {
    for (const Parameter& p : three) {
      for (std::size_t i = 0; i < p.size; ++i) g[p.offset + i] = 0.1f * normal(random);
    }
    optimizer->step(w, g, rate);
    for (const Parameter& p : three) {
      double ww = 0, gg = 0;
      for (std::size_t i = p.offset; i < p.offset + p.size; ++i) {
        ww += expected[i] * expected[i];
        gg += static_cast<double>(g[i]) * g[i];
      }
      const double local = p.batch_norm ? 1 : trust * std::sqrt(ww) / (std::sqrt(gg) + decay * std::sqrt(ww));
      for (std::size_t i = p.offset; i < p.offset + p.size; ++i) {
        v[i] = m * v[i] + rate * local * (g[i] + (p.batch_norm ? 0 : decay) * expected[i]);
        expected[i] -= v[i];
      }
    }
  }
  for (std::size_t i = 0; i < w.size(); ++i) ASSERT_NEAR(w[i], expected[i], 3e-6) << i;
}

// Chainer's GradientLARS: a tensor whose norm is not above the threshold takes lr × g with lr = γ η.
TEST(Lars, UsesTheTrustCoefficientBelowTheThreshold) {
  for (const double threshold : {0.0, 1e-2, 10.0}) {
    Lars lars(chunks_of({{"w", 0, 2, {2}, false}}, 2, {}), {0, 0.001, threshold});
    std::vector<float> w{3, 4}, g{0, 2};  // norms 5 and 2
    lars.step(w, g, 1);
    EXPECT_NEAR(lars.local_rates()[0], threshold < 5 ? 2.5 : 1, 1e-8);
    EXPECT_FLOAT_EQ(w[1], threshold < 5 ? 4 - 0.001f * 2.5f * 2 : 4 - 0.001f * 2);
  }
  Lars lars(chunks_of({{"w", 0, 1, {1}, false}}, 1, {}), {0, 0.001, 0});
  std::vector<float> w{0}, g{2};
  lars.step(w, g, 1);
  EXPECT_FLOAT_EQ(w[0], -0.002f) << "a tensor of zeros moves";
}

TEST(Adam, FollowsItsFormulaForEveryElement) {
  OptimizerOptions options;
  options.name = "adam";
  options.weight_decay = {1e-3f};
  const auto adam = make_optimizer(options, one_parameter, count);
  Problem p;
  std::vector<double> m(count, 0.0), v(count, 0.0);
  int t = 0;
  for (const float rate : rates) {
    p.next_gradient();
    adam->step(p.w, p.g, rate);
    ++t;
    for (std::size_t i = 0; i < count; ++i) {
      const double g = p.g[i] + 1e-3 * p.expected[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.999 * v[i] + 0.001 * g * g;
      const double corrected_m = m[i] / (1 - std::pow(0.9, t)), corrected_v = v[i] / (1 - std::pow(0.999, t));
      p.expected[i] -= rate * corrected_m / (std::sqrt(corrected_v) + 1e-8);
    }
  }
  p.expect_equal(5e-6);
}

TEST(RmspropWarmup, HasThePapersSharesOfSgd) {
  const double c = 10, p = 5;
  for (const bool printed : {false, true}) {
    EXPECT_DOUBLE_EQ(sgd_share(0, c, p, printed), 0.5 * std::exp(-4.0));
    EXPECT_DOUBLE_EQ(sgd_share(c - 2.5, c, p, printed), 0.5 * std::exp(-1.0));
    EXPECT_DOUBLE_EQ(sgd_share(c, c, p, printed), 0.5);
    EXPECT_DOUBLE_EQ(sgd_share(c + p / 2, c, p, printed), 1);
    EXPECT_DOUBLE_EQ(sgd_share(90, c, p, printed), 1);
  }
  const double just_before = std::nextafter(c + p / 2, 0);
  EXPECT_NEAR(sgd_share(just_before, c, p, false), 1, 1e-12) << "continuous";
  EXPECT_NEAR(sgd_share(just_before, c, p, true), 1.5, 1e-12) << "as printed: rises to 1.5, then jumps to 1";
  EXPECT_DOUBLE_EQ(sgd_share(11.25, c, p, false), 0.75);
  EXPECT_DOUBLE_EQ(sgd_share(11.25, c, p, true), 1);
}

TEST(RmspropWarmup, FollowsItsFormulaBeforeDuringAndAfterTheTransition) {
  OptimizerOptions options;
  options.name = "rmsprop_warmup";
  options.weight_decay = {1e-4f};
  const auto optimizer = make_optimizer(options, one_parameter, count);
  Problem p;
  std::vector<double> m(count, 0.0), delta(count, 0.0);
  const std::vector<double> epochs{8, 9.5, 10.5, 12, 12.5, 40};
  for (std::size_t step = 0; step < rates.size(); ++step) {
    const double rate = rates[step], sgd = sgd_share(epochs[step], 10, 5, false);
    const double rms = (1 - sgd) * 3e-4 / rate;
    p.next_gradient();
    optimizer->at_epoch(epochs[step]);
    optimizer->step(p.w, p.g, rates[step]);
    for (std::size_t i = 0; i < count; ++i) {
      const double g = p.g[i] + 1e-4 * p.expected[i];
      m[i] = 0.99 * m[i] + 0.01 * g * g;
      delta[i] = 0.9 * delta[i] - (sgd + rms / (std::sqrt(m[i]) + 1e-8)) * g;
      p.expected[i] += rate * delta[i];
    }
  }
  p.expect_equal(5e-6);
}

// What a checkpoint keeps is all there is.
TEST(Optimizer, ContinuesFromItsStateToTheBit) {
  for (const std::string& name : optimizer_names()) {
    OptimizerOptions options;
    options.name = name;
    options.rate_position = "corrected";
    const auto whole = make_optimizer(options, one_parameter, count);
    Problem p;
    for (int step = 0; step < 3; ++step) {
      p.next_gradient();
      whole->step(p.w, p.g, 0.1f);
    }
    const auto resumed = make_optimizer(options, one_parameter, count);
    resumed->arrays() = whole->arrays();
    resumed->scalars() = whole->scalars();
    std::vector<float> w = p.w;
    p.next_gradient();
    whole->step(p.w, p.g, 0.02f);
    resumed->step(w, p.g, 0.02f);
    EXPECT_EQ(w, p.w) << name;
  }
}

TEST(Optimizer, RefusesAnUnknownName) {
  OptimizerOptions options;
  options.name = "lamb";
  EXPECT_THROW(make_optimizer(options, one_parameter, count), std::invalid_argument);
}

}  // namespace
}  // namespace paceline::train
