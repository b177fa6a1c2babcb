// Momentum SGD and the learning-rate schedules against their formulas.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "trainer/optim/schedule.h"
#include "trainer/optim/sgd.h"

namespace paceline::train {
namespace {

class SgdFormula : public testing::TestWithParam<bool> {};

TEST_P(SgdFormula, HoldsOverFiveStepsOnEveryElement) {
  const bool nesterov = GetParam();
  const std::size_t count = 40001;  // more than one thread's chunk, and no multiple of a vector
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> w(count), g(count);
  for (float& value : w) value = normal(random);
  std::vector<double> expected(w.begin(), w.end()), velocity(count, 0.0);

  Sgd sgd(count, {0.9f, 5e-4f, nesterov});
  for (int step = 0; step < 5; ++step) {
    const float rate = 0.1f / static_cast<float>(step + 1);
    for (float& value : g) value = normal(random);
    sgd.step(w, g, rate);
    for (std::size_t i = 0; i < count; ++i) {
      const double gradient = g[i] + 5e-4 * expected[i];
      velocity[i] = 0.9 * velocity[i] + gradient;
      expected[i] -= rate * (nesterov ? gradient + 0.9 * velocity[i] : velocity[i]);
    }
  }
  for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(w[i], expected[i], 2e-6) << i;
}

INSTANTIATE_TEST_SUITE_P(PlainAndNesterov, SgdFormula, testing::Bool());

TEST(Sgd, RefusesArraysOfAnotherSize) {
  Sgd sgd(8, {});
  std::vector<float> w(8), g(7);
  EXPECT_THROW(sgd.step(w, g, 0.1f), std::invalid_argument);
}

TEST(Schedule, ConstantStaysTheSame) {
  EXPECT_EQ(constant_rate(0.05)(0), 0.05);
  EXPECT_EQ(constant_rate(0.05)(1000000), 0.05);
}

TEST(Schedule, SteppedChangesAtEachBoundaryItself) {
  const Schedule rate = stepped_rate(0.1, 0.1, {30, 60});
  EXPECT_DOUBLE_EQ(rate(29), 0.1);
  EXPECT_DOUBLE_EQ(rate(30), 0.01);
  EXPECT_DOUBLE_EQ(rate(59), 0.01);
  EXPECT_DOUBLE_EQ(rate(60), 0.001);
}

TEST(Schedule, CosineGoesFromTheRateThroughItsHalfToZeroAndStaysThere) {
  const Schedule rate = cosine_rate(0.4, 100);
  EXPECT_DOUBLE_EQ(rate(0), 0.4);
  EXPECT_DOUBLE_EQ(rate(25), 0.2 * (1 + std::sqrt(0.5)));
  EXPECT_DOUBLE_EQ(rate(50), 0.2);
  EXPECT_NEAR(rate(100), 0, 1e-16);
  EXPECT_NEAR(rate(150), 0, 1e-16);
}

TEST(Schedule, WarmUpIsLinearAndMeetsTheScheduleItLeadsTo) {
  const Schedule rate = warmed_up(cosine_rate(0.8, 100), 0.1, 20);
  const double met = 0.4 * (1 + std::cos(M_PI * 0.2));
  EXPECT_DOUBLE_EQ(rate(0), 0.1);
  EXPECT_DOUBLE_EQ(rate(10), (0.1 + met) / 2);
  EXPECT_DOUBLE_EQ(rate(20), met);
  EXPECT_DOUBLE_EQ(rate(60), cosine_rate(0.8, 100)(60));
}

}  // namespace
}  // namespace paceline::train
