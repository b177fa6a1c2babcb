// SPDX-License-Identifier: Apache-2.0
// Whole networks of the CPU backend against the float64 reference, and the properties that the training loop relies on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/unit/trainer/backend/reference/reference_model.h"
#include "tests/unit/trainer/backend/whole_models.h"
#include "trainer/backend/cpu/cpu_model.h"
#include "trainer/backend/cpu/layers.h"
#include "trainer/backend/cpu/onednn.h"
#include "trainer/core/error.h"
#include "trainer/nn/models.h"
#include "trainer/optim/sgd.h"

namespace paceline::train {
namespace {

using reference::ReferenceModel;
using reference::relative_error;
using reference::Tensor;

struct Batch {
  std::vector<float> images;
  std::vector<std::int32_t> labels;

  Batch(std::size_t samples, std::int64_t size, unsigned seed = 5) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    images.resize(samples * 3 * static_cast<std::size_t>(size * size));
    for (float& value : images) value = normal(random);
    for (std::size_t i = 0; i < samples; ++i) labels.push_back(static_cast<std::int32_t>(random() % 10));
  }

  Tensor tensor(std::int64_t size) const {
    Tensor result(static_cast<std::int64_t>(labels.size()), {3, size, size});
    result.values.assign(images.begin(), images.end());
    return result;
  }
};

struct Case {
  const char* model;
  std::int64_t size, batch;
  bool frozen, winograd;

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.model; }
};

constexpr double gradient_bound = 1e-5;  // ‖fast − reference‖₂ ÷ ‖reference‖₂ of each parameter's gradient
constexpr double loss_bound = 1e-6;
constexpr double kink_margin = 2e-6;
constexpr double by_winograd = 4;  // times the rounding error, and so the bounds

class WholeNetwork : public testing::TestWithParam<Case> {};

TEST_P(WholeNetwork, HasTheReferencesLossAndGradients) {
  const Case& c = GetParam();
  ModelOptions options;
  options.name = c.model;
  options.image_size = c.size;
  options.batch_size = c.batch;
  options.freeze_batch_norm = c.frozen;
  options.winograd = c.winograd;
  const double times = c.winograd ? by_winograd : 1;
  ReferenceModel expected(build_network(options), options.seed, c.frozen);
  // One ReLU whose input changes its sign by fp32's rounding changes gradients by a hundredth. The test takes images
  // that keep all inputs farther from zero than fp32's error.
  Batch batch(0, 0);
  double loss = 0;
  for (unsigned seed = 0; seed < 40 && (seed == 0 || expected.distance_to_kink() < times * kink_margin); ++seed) {
    batch = Batch(static_cast<std::size_t>(c.batch), c.size, seed);
    loss = expected.forward(batch.tensor(c.size), batch.labels, Mode::train);
  }
  ASSERT_GE(expected.distance_to_kink(), times * kink_margin);
  expected.backward(1.0 / static_cast<double>(c.batch));
  const auto model = make_cpu_model(options);
  const Score score = model->forward(batch.images, batch.labels, Mode::train);
  model->backward(1.0f / static_cast<float>(c.batch));

  EXPECT_NEAR(score.loss_sum, loss, times * loss_bound * loss);
  double largest = 0;
  for (const auto& [name, gradient] : expected.gradients) {
    largest = std::max(largest, std::sqrt(std::inner_product(gradient.begin(), gradient.end(), gradient.begin(), 0.0)));
  }
  for (const Parameter& parameter : model->parameters()) {
    const std::vector<float> fast = model->to_plain(parameter, model->gradients());
    const reference::Values& gradient = expected.gradients.at(parameter.name);
    const double norm = std::sqrt(std::inner_product(gradient.begin(), gradient.end(), gradient.begin(), 0.0));
    if (norm < 1e-12 * largest) {  // a bias before a batch norm has no effect; its gradient is rounding alone
      const double rest = std::sqrt(std::inner_product(fast.begin(), fast.end(), fast.begin(), 0.0));
      EXPECT_LT(rest, times * gradient_bound * largest) << parameter.name;
    } else {
      EXPECT_LT(relative_error(fast, gradient), times * gradient_bound) << parameter.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, WholeNetwork,
                         testing::Values(Case{"resnet18", 8, 8, false, false}, Case{"resnet18", 8, 8, false, true},
                                         Case{"resnet18", 8, 2, true, false}, Case{"resnet18", 8, 2, true, true},
                                         Case{"vgg11_bn", 32, 2, false, false}, Case{"vgg11_bn", 32, 2, false, true}),
                         [](const auto& info) {
                           return std::string(info.param.model) + (info.param.frozen ? "_frozen" : "") +
                                  (info.param.winograd ? "_winograd" : "");
                         });

// Otherwise the networks above would be the same twice.
TEST(WholeNetworks, UseWinogradsAlgorithmUnlessItIsSwitchedOff) {
  if (winograd_code() == nullptr) GTEST_SKIP() << "oneDNN decides here";
  const Batch batch(2, 8);
  std::vector<double> losses;
  for (const int which : {0, 1, 2}) {
    ModelOptions options;
    options.image_size = 8;
    options.batch_size = 2;
    if (which > 0) options.winograd = which == 1;
    losses.push_back(make_cpu_model(options)->forward(batch.images, batch.labels, Mode::train).loss_sum);
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_NE(losses[0], losses[2]);
}

ModelOptions small(std::int64_t batch) {
  ModelOptions options;
  options.image_size = 8;
  options.batch_size = batch;
  return options;
}

// Every kind of layer of a ResNet, in a network that takes milliseconds.
Network small_network() {
  Network net({3, 8, 8});
  const int stem = net.batch_norm("bn1", net.convolution("conv1", 0, 16, 3, 1, false), true);
  int x = net.batch_norm("a.bn1", net.convolution("a.conv1", stem, 32, 3, 2, false), true);
  x = net.batch_norm("a.bn2", net.convolution("a.conv2", x, 32, 3, 1, false), false);
  const int shortcut = net.batch_norm("a.down.1", net.convolution("a.down.0", stem, 32, 1, 2, false), false);
  x = net.max_pool("maxpool", net.add_relu("a.add", x, shortcut), 2, 2, 0);
  net.linear("fc", net.average_pool("avgpool", x, 2), 10);
  return net;
}

std::unique_ptr<Model> small_model(std::int64_t batch, bool freeze_batch_norm = false) {
  ModelOptions options = small(batch);
  options.freeze_batch_norm = freeze_batch_norm;
  return make_cpu_model(small_network(), options);
}

TEST(CpuModel, GivesTheSameBitsInASecondRun) {
  const Batch batch(4, 8);
  std::vector<float> first;
  for (int run = 0; run < 2; ++run) {
    const auto model = small_model(4);
    Sgd sgd(model->weights().size(), {0.9f, 5e-4f, false});
    for (int step = 0; step < 3; ++step) {
      model->forward(batch.images, batch.labels, Mode::train);
      model->backward(0.25f);
      sgd.step(model->weights(), model->gradients(), 0.05f);
    }
    if (run == 0) first.assign(model->weights().begin(), model->weights().end());
    EXPECT_TRUE(std::equal(first.begin(), first.end(), model->weights().begin()));
  }
}

void learn_by_heart(bool bf16) {
  const Batch batch(8, 8);
  ModelOptions options = small(8);
  options.dtype = bf16 ? "bf16" : "f32";
  const auto model = make_cpu_model(small_network(), options);
  Sgd sgd(model->weights().size(), {0.9f, 0, false});
  for (int step = 0; step < 60; ++step) {
    model->forward(batch.images, batch.labels, Mode::train);
    model->backward(1.0f / 8);
    sgd.step(model->weights(), model->gradients(), 0.05f);
  }
  const Score score = model->forward(batch.images, batch.labels, Mode::train);
  EXPECT_EQ(score.correct, 8);
  EXPECT_LT(score.loss_sum / 8, 0.1);
}

TEST(CpuModel, LearnsABatch) { learn_by_heart(false); }

TEST(CpuModelBf16, LearnsABatch) {
  if (const std::string reason = onednn::why_no_bf16(); !reason.empty()) GTEST_SKIP() << reason;
  learn_by_heart(true);
}

// With equal weights and images the difference is bf16's rounding, 2^-9 for each number, through all layers.
TEST(CpuModelBf16, HasTheLossAndGradientsOfF32UpToRounding) {
  if (const std::string reason = onednn::why_no_bf16(); !reason.empty()) GTEST_SKIP() << reason;
  const Batch batch(8, 8);
  std::vector<std::vector<float>> gradients;
  std::vector<double> losses;
  for (const bool bf16 : {false, true}) {
    ModelOptions options = small(8);
    options.dtype = bf16 ? "bf16" : "f32";
    const auto model = make_cpu_model(small_network(), options);
    losses.push_back(model->forward(batch.images, batch.labels, Mode::train).loss_sum);
    model->backward(1.0f / 8);
    std::vector<float> all;
    for (const Parameter& p : model->parameters()) {
      const std::vector<float> plain = model->to_plain(p, model->gradients());
      all.insert(all.end(), plain.begin(), plain.end());
    }
    gradients.push_back(all);
  }
  EXPECT_NEAR(losses[1], losses[0], 0.02 * losses[0]);
  EXPECT_LE(relative_error(gradients[1], std::vector<double>(gradients[0].begin(), gradients[0].end())), 0.1);
}

// The bounds that the GPU tests may use: those of a float64 network whose tensors are rounded to as many bits.
TEST(SmoothNetwork, ChangesOnlyByTheRoundingOfItsType) {
  const Batch batch(8, 16);
  ReferenceModel exact(smooth_network(), 1, true);
  exact.forward(batch.tensor(16), batch.labels, Mode::train);
  exact.backward(0.125);
  for (const int bits : {8, 11}) {
    ReferenceModel narrow(smooth_network(), 1, true);
    narrow.round = [bits](double value) {
      int exponent = 0;
      const double mantissa = std::frexp(value, &exponent);
      return std::ldexp(std::nearbyint(std::ldexp(mantissa, bits)), exponent - bits);
    };
    narrow.forward(batch.tensor(16), batch.labels, Mode::train);
    narrow.backward(0.125);
    double largest = 0;
    for (const auto& [name, gradient] : exact.gradients) {
      const std::vector<float> rounded(narrow.gradients[name].begin(), narrow.gradients[name].end());
      largest = std::max(largest, relative_error(rounded, gradient));
    }
    EXPECT_LT(largest, 0.5 * smooth_bound(bits)) << bits;
    EXPECT_GT(largest, 0.05 * smooth_bound(bits)) << bits << ": a bound that nothing could exceed";
  }
}

TEST(CpuModel, DropsValuesByTheSeedAndKeepsTheMean) {
  ModelOptions options;
  options.batch_size = 4;
  const auto model = make_cpu_model(dropout_network(), options);
  expect_dropout_by_seed(*model);
}

TEST(CpuModel, RefusesToExceedItsMemoryLimit) {
  ModelOptions options = small(4);
  options.memory_limit = std::size_t{1} << 20;
  EXPECT_THAT([&] { make_cpu_model(small_network(), options); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("lower ‹batch-size›")));
  options.memory_limit = std::size_t{1} << 30;
  EXPECT_NO_THROW(make_cpu_model(small_network(), options));
}

TEST(CpuModel, FillsTheMemoryOfItsTensorsInItsFirstStep) {
  ModelOptions options;  // a ResNet-18, whose tensors take many huge pages
  options.batch_size = 4;
  const auto model = make_cpu_model(options);
  const Batch batch(4, options.image_size);
  const std::size_t at_start = model->unfilled_bytes();
  model->forward(batch.images, batch.labels, Mode::train);
  const std::size_t after_forward = model->unfilled_bytes();
  model->backward(0.25f);
  EXPECT_GT(at_start, after_forward);
  EXPECT_GT(after_forward, model->unfilled_bytes());
}

TEST(CpuModel, EvaluatesAPartialBatchLikeTheSamePartOfAFullOne) {
  const Batch batch(8, 8);
  const auto model = small_model(8);
  for (int step = 0; step < 5; ++step) model->forward(batch.images, batch.labels, Mode::train);
  const std::span<const float> images(batch.images);
  const std::span<const std::int32_t> labels(batch.labels);
  const std::size_t image = 3 * 8 * 8;
  const Score whole = model->forward(images, labels, Mode::evaluate);
  const Score head = model->forward(images.first(3 * image), labels.first(3), Mode::evaluate);
  const Score tail = model->forward(images.subspan(3 * image), labels.subspan(3), Mode::evaluate);
  EXPECT_EQ(head.samples, 3);
  EXPECT_EQ(whole.samples, 8);
  EXPECT_EQ(head.correct + tail.correct, whole.correct);
  EXPECT_NEAR(head.loss_sum + tail.loss_sum, whole.loss_sum, 1e-6 * whole.loss_sum);
}

TEST(CpuModel, EvaluatesWithTheReferencesRunningStatistics) {
  const Batch batch(8, 8);
  const auto model = small_model(8);
  ReferenceModel expected(small_network(), 1, false);
  for (int step = 0; step < 2; ++step) {
    model->forward(batch.images, batch.labels, Mode::train);
    expected.forward(batch.tensor(8), batch.labels, Mode::train);
  }
  const double loss = expected.forward(batch.tensor(8), batch.labels, Mode::evaluate);
  EXPECT_NEAR(model->forward(batch.images, batch.labels, Mode::evaluate).loss_sum, loss, 1e-5 * loss);
}

TEST(CpuModel, EvaluationChangesNeitherStatisticsNorGradients) {
  const Batch batch(4, 8);
  const auto model = small_model(4);
  model->forward(batch.images, batch.labels, Mode::train);
  model->backward(1);
  const std::vector<float> statistics(model->statistics().begin(), model->statistics().end());
  const std::vector<float> gradients(model->gradients().begin(), model->gradients().end());
  model->forward(batch.images, batch.labels, Mode::evaluate);
  EXPECT_TRUE(std::equal(statistics.begin(), statistics.end(), model->statistics().begin()));
  EXPECT_TRUE(std::equal(gradients.begin(), gradients.end(), model->gradients().begin()));
}

TEST(CpuModel, FrozenBatchNormKeepsItsStatisticsAndLearnsScaleAndShift) {
  const Batch batch(4, 8);
  const auto model = small_model(4, true);
  const std::vector<float> before(model->statistics().begin(), model->statistics().end());
  model->forward(batch.images, batch.labels, Mode::train);
  model->backward(1);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), model->statistics().begin()));
  for (const Parameter& parameter : model->parameters()) {
    if (!parameter.batch_norm) continue;
    EXPECT_THAT(model->to_plain(parameter, model->gradients()), testing::Contains(testing::Ne(0.0f))) << parameter.name;
  }
}

TEST(CpuModel, ReturnsPlainWeightsAsTheyWereGiven) {
  const auto model = small_model(2);
  std::vector<float> other(model->weights().size(), 0.0f);
  for (const Parameter& parameter : model->parameters()) {
    std::vector<float> plain = model->to_plain(parameter, model->weights());
    std::iota(plain.begin(), plain.end(), 1.0f);
    model->from_plain(parameter, plain, other);
    EXPECT_EQ(model->to_plain(parameter, other), plain) << parameter.name;
  }
}

TEST(CpuModel, CallsItsObserverForEachLayerForwardAndBackward) {
  struct Recorder : LayerObserver {
    void begin(const std::string& layer, Mode, bool backward) override {
      (backward ? backward_layers : forward_layers).push_back(layer);
      ++open;
    }
    void end() override { --open; }
    std::vector<std::string> forward_layers, backward_layers;
    int open = 0;
  } recorder;
  const Batch batch(2, 8);
  const auto model = make_cpu_model(small(2));
  model->observer = &recorder;
  model->forward(batch.images, batch.labels, Mode::train);
  model->backward(1);
  EXPECT_EQ(recorder.open, 0);
  EXPECT_EQ(recorder.forward_layers.front(), "conv1");
  EXPECT_EQ(recorder.forward_layers.back(), "fc");
  EXPECT_THAT(recorder.forward_layers, testing::Contains("layer1.0.conv1"));
  std::reverse(recorder.backward_layers.begin(), recorder.backward_layers.end());
  EXPECT_EQ(recorder.backward_layers, recorder.forward_layers);
}

TEST(CpuModel, RefusesInvalidBatchesAndLabels) {
  const Batch batch(4, 8);
  const std::span<const float> images(batch.images);
  const auto model = small_model(4);
  const std::vector<std::int32_t> wrong{0, 1, 2, 10};
  EXPECT_THROW(model->forward(images, wrong, Mode::train), std::invalid_argument);
  EXPECT_THROW(model->forward(images, std::vector<std::int32_t>{0, 1, 2}, Mode::train), std::invalid_argument);
  EXPECT_THROW(model->forward(images.first(3 * 64), std::vector<std::int32_t>{0}, Mode::train), std::invalid_argument);
}

// Combines layers' gradients in ways that the published networks do not.
TEST(CpuModel, AddsTheGradientsOfATensorWithThreeReaders) {
  Network net({3, 8, 8});
  const int stem = net.relu("relu1", net.convolution("conv1", 0, 32, 3, 1, true));
  const int branch = net.relu("relu2", net.convolution("conv2", stem, 32, 3, 1, true));
  const int first = net.add_relu("add1", branch, stem);
  const int second = net.add_relu("add2", first, stem);
  const int both = net.add_relu("add3", net.relu("relu3", second), net.relu("relu4", second));
  net.linear("fc", net.average_pool("pool", both, 8), 10);
  ReferenceModel expected(net, 1, false);
  const Batch batch(4, 8);
  expected.forward(batch.tensor(8), batch.labels, Mode::train);
  expected.backward(1);
  for (const bool winograd : {false, true}) {
    SCOPED_TRACE(winograd);
    ModelOptions options = small(4);
    options.winograd = winograd;
    const auto model = make_cpu_model(net, options);
    model->forward(batch.images, batch.labels, Mode::train);
    model->backward(1);
    for (const Parameter& parameter : model->parameters()) {
      EXPECT_LT(relative_error(model->to_plain(parameter, model->gradients()), expected.gradients[parameter.name]),
                (winograd ? by_winograd : 1) * 3e-6)
          << parameter.name;
    }
  }
}

// The end of the lectures' VGG: linear layers without bias, a batch norm of vectors between them.
TEST(CpuModel, NormalisesTheResultOfALinearLayer) {
  for (const bool frozen : {false, true}) {
    Network net({3, 8, 8});
    int x = net.max_pool("pool", net.batch_norm("bn", net.convolution("conv", 0, 16, 3, 1, false), true), 2, 2, 0);
    x = net.batch_norm("bn_fc1", net.linear("fc1", x, 24, false), true);
    net.linear("fc2", x, 10, false);
    ModelOptions options = small(8);
    options.freeze_batch_norm = frozen;
    const auto model = make_cpu_model(net, options);
    ReferenceModel expected(net, options.seed, frozen);
    for (auto& [name, w] : expected.weights) {  // the small initial weights would be lost in the epsilon
      if (name.starts_with("fc")) {
        for (double& value : w) value *= 16;
      }
    }
    for (const Parameter& p : model->parameters()) {
      const reference::Values& w = expected.weights.at(p.name);
      model->from_plain(p, std::vector<float>(w.begin(), w.end()), model->weights());
    }
    Batch batch(8, 8);
    for (unsigned seed = 0; seed < 40; ++seed) {
      batch = Batch(8, 8, seed);
      expected.forward(batch.tensor(8), batch.labels, Mode::train);
      if (expected.distance_to_kink() >= kink_margin) break;
    }
    ASSERT_GE(expected.distance_to_kink(), kink_margin);
    expected.backward(1);
    model->forward(batch.images, batch.labels, Mode::train);
    model->backward(1);
    for (const Parameter& p : model->parameters()) {
      EXPECT_LT(relative_error(model->to_plain(p, model->gradients()), expected.gradients[p.name]), gradient_bound)
          << p.name;
    }
  }
}

}  // namespace
}  // namespace paceline::train
