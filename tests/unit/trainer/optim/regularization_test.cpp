// SPDX-License-Identifier: Apache-2.0
// AdamW, clipping by the global norm and label smoothing, each against numbers of PyTorch and against its formula in
// float64.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "trainer/backend/cpu/cpu_model.h"
#include "trainer/backend/cpu/kernels.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/optim/optimizer.h"

namespace paceline::train {
namespace regularization_test {
namespace {

std::unique_ptr<Optimizer> adamw_of(std::size_t count, const OptimizerOptions& options) {
  return make_optimizer(options, {{"all.weight", 0, count, {static_cast<std::int64_t>(count)}, false}}, count);
}

// torch.optim.AdamW([w], lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2) in float64; the last rate is 0.05.
TEST(AdamW, TakesTheStepsOfPyTorch) {
  OptimizerOptions options;
  options.name = "adamw";
  options.weight_decay.rate = 0.2f;
  options.beta1 = 0.8;
  options.beta2 = 0.95;
  options.epsilon = 1e-3;
  const auto adamw = adamw_of(3, options);
  EXPECT_EQ(adamw->name(), "adamw");
  std::vector<float> w{0.5f, -1.25f, 2.0f};
  const struct {
    std::vector<float> gradient;
    float rate;
    double expected[3];
  } steps[] = {{{1.0f, -0.5f, 0.25f}, 0.1f, {0.3900999001, -1.1251996008, 1.86039840637}},
               {{-2.0f, 0.0f, 0.5f}, 0.1f, {0.424114716909, -1.03920195255, 1.72580113333}},
               {{0.125f, 3.0f, -1.0f}, 0.05f, {0.433167616572, -1.05933021044, 1.7219106137}}};
  for (const auto& step : steps) {
    adamw->step(w, step.gradient, step.rate);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(w[i], step.expected[i], 5e-7) << i;
  }
}

TEST(AdamW, FollowsItsFormulaForEveryElement) {
  constexpr std::size_t count = 40001;  // more than two chunks, and no multiple of a vector
  OptimizerOptions options;
  options.name = "adamw";
  options.weight_decay = {0.05f};
  const auto adamw = adamw_of(count, options);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> w(count), g(count);
  for (float& value : w) value = normal(random);
  std::vector<double> expected(w.begin(), w.end()), m(count, 0.0), v(count, 0.0);
  int t = 0;
  for (const double rate : {0.05, 0.1, 0.01, 0.02}) {
    for (float& value : g) value = normal(random);
    adamw->step(w, g, static_cast<float>(rate));
    ++t;
    for (std::size_t i = 0; i < count; ++i) {
      m[i] = 0.9 * m[i] + 0.1 * g[i];
      v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
      const double step = m[i] / (1 - std::pow(0.9, t)) / (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8);
      expected[i] = expected[i] * (1 - rate * 0.05) - rate * step;
    }
  }
  for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(w[i], expected[i], 5e-6) << i;
}

TEST(AdamW, DecaysNoBatchNormsOnRequest) {
  OptimizerOptions options;
  options.name = "adamw";
  options.weight_decay = {0.5f, false, true};
  const auto adamw = make_optimizer(options, {{"conv.weight", 0, 2, {2}, false}, {"bn.weight", 2, 2, {2}, true}}, 4);
  std::vector<float> w(4, 1.0f), g(4, 0.0f);
  adamw->step(w, g, 0.1f);
  EXPECT_FLOAT_EQ(w[1], 0.95f);
  EXPECT_FLOAT_EQ(w[2], 1.0f);
}

// torch.nn.utils.clip_grad_norm_ of the gradients [3, −4] and [12] to 2.5: their norm is 13.
TEST(Clipping, DividesAsPyTorchDoes) {
  std::vector<float> gradient{3, -4, 12};
  const double squares = host_memory().sum_of_squares(gradient);
  EXPECT_DOUBLE_EQ(squares, 169);
  host_memory().divide(gradient, static_cast<float>(clip_divisor(squares, 2.5)));
  EXPECT_NEAR(gradient[0], 0.5769230325443822, 1e-7);
  EXPECT_NEAR(gradient[1], -0.7692307100591762, 1e-7);
  EXPECT_NEAR(gradient[2], 2.3076921301775286, 3e-7);
  EXPECT_EQ(clip_divisor(squares, 14), 1) << "a gradient that is short enough stays as it is";
}

TEST(Clipping, AddsSquaresInFloat64) {
  std::vector<float> values(300'001, 0.1f);
  values[7] = 1e3f;
  double expected = 0;
  for (const float value : values) expected += static_cast<double>(value) * value;
  EXPECT_NEAR(host_memory().sum_of_squares(values), expected, 1e-10 * expected);
}

// torch.nn.functional.cross_entropy(logits, labels, reduction="sum", label_smoothing=ε) and its gradient, in float64.
TEST(LabelSmoothing, GivesPyTorchsLossAndGradient) {
  const std::vector<float> logits{1, -2, 0.5f, 3, 0.25f, 0.25f, -1, 4};
  const std::vector<std::int32_t> labels{2, 3};
  const struct {
    double smoothing, loss;
    double gradient[8];
  } cases[] = {{0,
                2.75463092091,
                {0.1105537504, 0.005504147128, -0.9329457609, 0.8168878634, 0.02231764912, 0.02231764912,
                 0.006394113527, -0.05102941177}},
               {0.1,
                3.05463092091,
                {0.08555375036, -0.01949585287, -0.8579457609, 0.7918878634, -0.002682350881, -0.002682350881,
                 -0.01860588647, 0.02397058823}},
               {1,
                5.75463092091,
                {-0.1394462496, -0.2444958529, -0.1829457609, 0.5668878634, -0.2276823509, -0.2276823509, -0.2436058865,
                 0.6989705882}}};
  for (const auto& c : cases) {
    const Score score = kernels::cross_entropy(logits.data(), labels, 4, c.smoothing);
    EXPECT_NEAR(score.loss_sum, c.loss, 1e-10) << c.smoothing;
    EXPECT_EQ(score.correct, 1) << "smoothing does not change which images are right";
    std::vector<float> gradient(8);
    kernels::cross_entropy_backward(logits.data(), labels, 4, 2, gradient.data(), c.smoothing);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(gradient[i], 2 * c.gradient[i], 1e-7) << c.smoothing << ' ' << i;
  }
}

// A model smooths the labels of training, and not those of evaluation.
TEST(LabelSmoothing, AppliesToTheTrainingLossOfAModel) {
  Network net({1, 2, 2});
  net.linear("fc", net.convolution("conv", 0, 1, 1, 1, false), 3);
  std::vector<double> train, evaluate;
  std::vector<std::vector<float>> gradients;
  const std::vector<float> image{0.5f, -1, 2, 0.25f};
  const std::vector<std::int32_t> label{1};
  for (const double smoothing : {0.0, 0.3}) {
    ModelOptions options;
    options.batch_size = 1;
    options.label_smoothing = smoothing;
    const auto model = make_cpu_model(net, options);
    model->from_plain(model->parameters()[0], std::vector<float>{1}, model->weights());  // the image as it is
    const Parameter& weight = model->parameters()[1];
    model->from_plain(weight, std::vector<float>{1, 2, 0, 1, -1, 0, 1, 1, 2, 0, 0, -1}, model->weights());
    evaluate.push_back(model->forward(image, label, Mode::evaluate).loss_sum);
    train.push_back(model->forward(image, label, Mode::train).loss_sum);
    model->backward(1);
    gradients.push_back(model->to_plain(weight, model->gradients()));
  }
  EXPECT_EQ(evaluate[0], train[0]);
  EXPECT_EQ(evaluate[1], evaluate[0]);
  const double logits[] = {0.5 - 2 + 0.25, -0.5 + 2 + 0.25, 1 - 0.25};  // by hand
  EXPECT_NEAR(train[1] - train[0], 0.3 * (logits[1] - (logits[0] + logits[1] + logits[2]) / 3), 1e-6);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(gradients[1][c * 4 + i] - gradients[0][c * 4 + i], (c == 1 ? 0.3 : 0) * image[i] - 0.1 * image[i],
                  1e-6);
    }
  }
}

TEST(Score, CountsALabelAmongTheBestFiveUnlessFiveLogitsAreLarger) {
  const std::vector<float> logits{6, 5, 4, 3, 2, 1, 0,   // the fifth
                                  6, 5, 4, 3, 2, 1, 0,   // the sixth
                                  1, 1, 1, 1, 1, 1, 1};  // equal ones are not larger
  const std::vector<std::int32_t> labels{4, 5, 6};
  const Score score = kernels::cross_entropy(logits.data(), labels, 7, 0);
  EXPECT_EQ(score.in_top_5, 2);
  EXPECT_EQ(score.correct, 0);
  Score twice = score;
  twice += score;
  EXPECT_EQ(twice.in_top_5, 4);
}

}  // namespace
}  // namespace regularization_test
}  // namespace paceline::train
