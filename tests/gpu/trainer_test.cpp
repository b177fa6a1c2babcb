// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on a GPU: whole networks against the CPU backend, and what the training loop relies on.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <thread>

#include "tests/gpu/copies.h"
#include "tests/gpu/on_gpu.h"
#include "tests/unit/trainer/backend/operations.h"
#include "tests/unit/trainer/backend/reference/reference_model.h"
#include "tests/unit/trainer/backend/whole_models.h"
#include "trainer/backend/cpu/cpu_model.h"
#include "trainer/backend/cuda/cuda_model.h"
#include "trainer/backend/cuda/cuda_network.h"
#include "trainer/backend/cuda/cudnn.h"
#include "trainer/nn/models.h"
#include "trainer/optim/lars.h"
#include "trainer/optim/make_optimizer.h"

namespace paceline::train::cuda {
namespace {

struct Images {
  std::vector<float> planes;
  std::vector<std::int32_t> labels;
  Images(std::size_t samples, std::int64_t size, unsigned seed = 5) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    planes.resize(samples * 3 * static_cast<std::size_t>(size * size));
    for (float& value : planes) value = normal(random);
    for (std::size_t i = 0; i < samples; ++i) labels.push_back(static_cast<std::int32_t>(random() % 10));
  }
};

// Every kind of layer, every fusion, a residual that is a batch norm and one that is a sum.
Network every_layer() {
  Network net({3, 16, 16});
  const int stem = net.batch_norm("bn1", net.convolution("conv1", 0, 16, 3, 1, false), true);
  int x = net.batch_norm("a.bn1", net.convolution("a.conv1", stem, 32, 3, 2, false), true);
  x = net.batch_norm("a.bn2", net.convolution("a.conv2", x, 32, 3, 1, false), false);
  const int shortcut = net.batch_norm("a.down.1", net.convolution("a.down.0", stem, 32, 1, 2, false), false);
  x = net.add_relu("a.add", x, shortcut);
  x = net.add_relu("b.add", net.batch_norm("b.bn1", net.convolution("b.conv1", x, 32, 3, 1, false), false), x);
  x = net.relu("c.relu", net.convolution("c.conv", x, 32, 3, 1, true));
  x = net.max_pool("maxpool", x, 3, 2, 1);
  x = net.relu("d.relu", net.linear("d", net.average_pool("avgpool", x, 2), 24));
  net.linear("fc", x, 10);
  return net;
}

ModelOptions exact(std::int64_t batch) {
  ModelOptions options;
  options.batch_size = batch;
  options.winograd = false;
  return options;
}

double distance(std::span<const float> a, std::span<const float> b) {
  return relative_error(std::vector<float>(a.begin(), a.end()), std::vector<float>(b.begin(), b.end()));
}

// Loss, gradients and running statistics after two steps forward and backward.
void expect_the_cpus(const ModelOptions& options, const std::unique_ptr<Model>& gpu, double bound) {
  const auto cpu = make_cpu_model(every_layer(), options);
  for (const unsigned seed : {1u, 2u}) {
    const Images images(static_cast<std::size_t>(options.batch_size), 16, seed);
    const Score expected = cpu->forward(images.planes, images.labels, Mode::train);
    const Score score = gpu->forward(images.planes, images.labels, Mode::train);
    EXPECT_NEAR(score.loss_sum, expected.loss_sum, bound * expected.loss_sum);
    EXPECT_EQ(score.samples, expected.samples);
    cpu->backward(0.125f);
    gpu->backward(0.125f);
  }
  ASSERT_EQ(cpu->parameters().size(), gpu->parameters().size());
  for (std::size_t i = 0; i < cpu->parameters().size(); ++i) {
    const Parameter &a = cpu->parameters()[i], &b = gpu->parameters()[i];
    ASSERT_EQ(a.name, b.name);
    EXPECT_EQ(cpu->to_plain(a, cpu->weights()), gpu->to_plain(b, gpu->weights())) << a.name;
    EXPECT_LE(distance(gpu->to_plain(b, gpu->gradients()), cpu->to_plain(a, cpu->gradients())), 10 * bound) << a.name;
  }
  EXPECT_LE(distance(on_host(gpu->statistics()), cpu->statistics()), bound);
}

struct Variant {
  const char* name;
  void (*set)(ModelOptions&);
  friend void PrintTo(const Variant& v, std::ostream* out) { *out << v.name; }
};

const Variant variants[]{
    {"plain", [](ModelOptions&) {}},
    {"ghost", [](ModelOptions& o) { o.batch_norm.ghost_batch = 3; }},
    {"frozen", [](ModelOptions& o) { o.freeze_batch_norm = true; }},
    {"last_batch", [](ModelOptions& o) { o.batch_norm.momentum = 1; }},
    // As if there were another rank with the same batch.
    {"synchronised",
     [](ModelOptions& o) {
       o.batch_norm.sum_over_ranks = [](std::span<double> sums) {
         for (double& sum : sums) sum *= 2;
       };
     }},
};

class CudaVariants : public OnGpu, public testing::WithParamInterface<Variant> {};

TEST_P(CudaVariants, ComputeWhatTheCpuDoes) {
  ModelOptions options = exact(8);
  GetParam().set(options);
  expect_the_cpus(options, model_of(every_layer(), options), 2e-6);
}

INSTANTIATE_TEST_SUITE_P(All, CudaVariants, testing::ValuesIn(variants),
                         [](const auto& info) { return std::string(info.param.name); });

using CudaModelTest = OnGpu;

TEST_F(CudaModelTest, EvaluatesPartOfABatchWithTheRunningStatistics) {
  const ModelOptions options = exact(8);
  const auto gpu = model_of(every_layer(), options), cpu = make_cpu_model(every_layer(), options);
  const Images images(8, 16);
  for (Model* model : {gpu.get(), cpu.get()}) model->forward(images.planes, images.labels, Mode::train);
  const auto part = std::span(images.planes).first(5 * 3 * 16 * 16);
  const auto labels = std::span(images.labels).first(5);
  const Score score = gpu->forward(part, labels, Mode::evaluate), expected = cpu->forward(part, labels, Mode::evaluate);
  EXPECT_NEAR(score.loss_sum, expected.loss_sum, 2e-6 * expected.loss_sum);
  EXPECT_EQ(score.correct, expected.correct);
  EXPECT_EQ(score.samples, 5);
  EXPECT_THROW(gpu->forward(part, labels, Mode::train), std::invalid_argument);
}

TEST_F(CudaModelTest, NarrowTypesDifferByTheirRoundingAlone) {
  const Images images(8, 16);
  for (const auto& [dtype, bits] : {std::pair{"tf32", 11}, {"bf16", 8}, {"f16", 11}}) {
    SCOPED_TRACE(dtype);
    ModelOptions options = exact(8);
    options.freeze_batch_norm = true;
    const auto cpu = make_cpu_model(smooth_network(), options);
    options.dtype = dtype;
    const auto gpu = model_of(smooth_network(), options);
    double loss[2];
    Model* const models[]{gpu.get(), cpu.get()};
    for (int i = 0; i < 2; ++i) {
      loss[i] = models[i]->forward(images.planes, images.labels, Mode::train).loss_sum;
      models[i]->backward(0.125f);
    }
    EXPECT_NEAR(loss[0], loss[1], smooth_bound(bits) * loss[1]);
    for (std::size_t i = 0; i < cpu->parameters().size(); ++i) {
      EXPECT_LE(distance(gpu->to_plain(gpu->parameters()[i], gpu->gradients()),
                         cpu->to_plain(cpu->parameters()[i], cpu->gradients())),
                smooth_bound(bits))
          << cpu->parameters()[i].name;
    }
  }
}

// With ReLUs and maxima, of which rounding sees some on their other side, the loss still comes near.
TEST_F(CudaModelTest, NarrowTypesComeNearInANetworkOfEveryLayer) {
  const Images images(8, 16);
  const double expected =
      make_cpu_model(every_layer(), exact(8))->forward(images.planes, images.labels, Mode::train).loss_sum;
  for (const auto& [dtype, bits] : {std::pair{"tf32", 11}, {"bf16", 8}, {"f16", 11}}) {
    ModelOptions options = exact(8);
    options.dtype = dtype;
    const double loss = model_of(every_layer(), options)->forward(images.planes, images.labels, Mode::train).loss_sum;
    EXPECT_NEAR(loss, expected, smooth_bound(bits) * expected) << dtype;
  }
}

// Two steps and an evaluation with what cuDNN fuses and without it, and how far each is from fp32: fused, half as much
// again at most. Channels in multiples of eight, as cuDNN wants them.
TEST_F(CudaModelTest, FusedConvolutionsComputeWhatSeparateKernelsDo) {
  const Images images(8, 16);
  ModelOptions options = exact(8);
  const auto exact_one = make_cpu_model(every_layer(), options);
  options.dtype = "f16";
  const auto fused = model_of(every_layer(), options);
  options.fuse = false;
  const auto separate = model_of(every_layer(), options);
  double loss[3], evaluated[3];
  Model* const models[]{exact_one.get(), fused.get(), separate.get()};
  for (int i = 0; i < 3; ++i) {
    for (int step = 0; step < 2; ++step) {
      loss[i] = models[i]->forward(images.planes, images.labels, Mode::train).loss_sum;
      models[i]->backward(0.125f);
    }
    evaluated[i] = models[i]->forward(images.planes, images.labels, Mode::evaluate).loss_sum;
  }
  EXPECT_NEAR(loss[1], loss[2], 1e-2 * loss[0]);
  EXPECT_NEAR(evaluated[1], evaluated[2], 1e-2 * evaluated[0]);
  EXPECT_LE(distance(on_host(fused->statistics()), on_host(exact_one->statistics())), 4e-3);
  for (std::size_t i = 0; i < exact_one->parameters().size(); ++i) {
    const auto expected = exact_one->to_plain(exact_one->parameters()[i], exact_one->gradients());
    const auto error = [&](Model& model) {
      return distance(model.to_plain(model.parameters()[i], model.gradients()), expected);
    };
    EXPECT_LE(error(*fused), 1.5 * error(*separate) + 1e-2) << exact_one->parameters()[i].name;
  }
}

// Which of them: three for a convolution behind a batch norm that it alone reads, one for any other before one.
TEST_F(CudaModelTest, FusesWhatThisGpuHasKernelsForAndNothingElse) {
  Stream stream("test");
  PlanCache plans("");
  NetworkSettings settings;
  settings.batch = 8;
  for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16}) {
    settings.precision = precision;
    const int fused = CudaNetwork(every_layer(), settings, device_, stream, plans).fused();
    const bool known = precision == Precision::f16 && (device_.major == 8 || device_.major == 9) &&
                       device_.minor == 0 && cudnn_version() / 100 == 919;  // other versions may have more kernels
    if (precision != Precision::f16) {
      EXPECT_EQ(fused, 0);
    } else if (known) {
      EXPECT_EQ(fused, 4 + 2);  // conv1 reads the image, which has too few channels
    }
  }
  settings.precision = Precision::f16;
  settings.fuse = false;
  EXPECT_EQ(CudaNetwork(every_layer(), settings, device_, stream, plans).fused(), 0);
  settings.fuse = true;
  settings.freeze_batch_norm = true;
  EXPECT_EQ(CudaNetwork(every_layer(), settings, device_, stream, plans).fused(), 0);
  settings.freeze_batch_norm = false;
  settings.batch_norm.ghost_batch = 4;
  EXPECT_EQ(CudaNetwork(every_layer(), settings, device_, stream, plans).fused(), 0);
}

// Ten times the first loss scale is out of fp16's range; the gradients of the weights, in fp32, are not.
TEST_F(CudaModelTest, RepeatsBackwardWithASmallerLossScaleWhereFp16Overflows) {
  ModelOptions options = exact(8);
  options.dtype = "f16";
  const auto gpu = model_of(every_layer(), options);
  const Images images(8, 16);
  gpu->forward(images.planes, images.labels, Mode::train);
  gpu->backward(1);
  const std::vector<float> small = on_host(gpu->gradients());
  gpu->backward(10);
  std::vector<float> large = on_host(gpu->gradients());
  for (float& value : large) {
    ASSERT_TRUE(std::isfinite(value));
    value /= 10;
  }
  EXPECT_LE(distance(large, small), 1e-2);
}

TEST_F(CudaModelTest, GraphsComputeTheSameBits) {
  ModelOptions options = exact(8);
  // Two that choose for themselves may take different plans, whose sums round differently.
  const std::string plans = testing::TempDir() + "paceline-plans-" + std::to_string(getpid()) + ".txt";
  options.plan_cache = plans;
  const auto plain = model_of(every_layer(), options);
  options.cuda_graphs = true;
  const auto graph = model_of(every_layer(), options);
  std::remove(plans.c_str());
  const Memory::Values second = graph->memory().allocate(graph->gradients().size());
  const std::span<float> first_set = graph->gradients(), second_set{second.get(), first_set.size()};
  for (unsigned step = 0; step < 6; ++step) {  // eager, captured, replayed; into two sets of gradients in turn
    const Images images(8, 16, step);
    graph->set_gradients(step % 2 == 0 ? first_set : second_set);
    for (Model* model : {plain.get(), graph.get()}) {
      model->forward(images.planes, images.labels, Mode::train);
      model->backward(0.125f);
    }
    const std::vector<float> expected = on_host(plain->gradients()), found = on_host(graph->gradients());
    ASSERT_EQ(std::memcmp(expected.data(), found.data(), first_set.size_bytes()), 0) << step;
  }
}

TEST_F(CudaModelTest, AnnouncesEachGradientOnceWhenItIsThere) {
  const ModelOptions options = exact(8);
  const auto gpu = model_of(every_layer(), options);
  const Images images(8, 16);
  gpu->forward(images.planes, images.labels, Mode::train);
  gpu->backward(0.125f);
  const std::vector<float> expected = on_host(gpu->gradients());
  put(std::vector(expected.size(), std::numeric_limits<float>::quiet_NaN()), gpu->gradients());
  std::size_t next = gpu->parameters().size();
  gpu->gradients_ready = [&](std::size_t first, std::size_t count) {
    EXPECT_EQ(first + count, next);  // the last layer's first
    next = first;
    // There when the stream has come to where it is now.
    PACELINE_CHECK_CUDA(cudaStreamSynchronize(static_cast<cudaStream_t>(gpu->stream())));
    const Parameter& parameter = gpu->parameters()[first];
    const std::vector<float> found = on_host(gpu->gradients().subspan(parameter.offset, parameter.size));
    EXPECT_EQ(std::memcmp(found.data(), expected.data() + parameter.offset, parameter.size * sizeof(float)), 0)
        << parameter.name;
  };
  gpu->backward(0.125f);
  EXPECT_EQ(next, 0u);
}

// The GPU stands still until all gradients are announced: whoever announces them does not wait for it.
TEST_F(CudaModelTest, AnnouncesGradientsAheadOfTheGpu) {
  for (const char* dtype : {"bf16", "f16"}) {
    ModelOptions options = exact(8);
    options.dtype = dtype;
    const auto gpu = model_of(every_layer(), options);
    const Images images(8, 16);
    for (int twice = 0; twice < 2; ++twice) {  // the first one loads kernels, which may wait
      gpu->forward(images.planes, images.labels, Mode::train);
      if (twice == 0) gpu->backward(0.125f);
    }
    std::atomic<bool> announced = false;
    bool early = false;
    struct Gate {
      std::atomic<bool>& announced;
      bool& early;
    } gate{announced, early};
    PACELINE_CHECK_CUDA(cudaLaunchHostFunc(
        static_cast<cudaStream_t>(gpu->stream()),
        [](void* data) {
          Gate& of = *static_cast<Gate*>(data);
          for (int ms = 0; ms < 5000 && !of.announced; ++ms) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          of.early = of.announced;
        },
        &gate));
    gpu->gradients_ready = [&](std::size_t first, std::size_t) {
      if (first == 0) announced = true;
    };
    gpu->backward(0.125f);
    EXPECT_TRUE(early) << dtype;
  }
}

// A gradient that overflows has been announced by then; whoever has it is told to ask again.
TEST_F(CudaModelTest, LeavesTheRepetitionToWhoeverHasTheGradients) {
  ModelOptions options = exact(8);
  options.dtype = "f16";
  const auto gpu = model_of(every_layer(), options);
  const Images images(8, 16);
  gpu->forward(images.planes, images.labels, Mode::train);
  gpu->backward(1);
  EXPECT_FALSE(gpu->wants_backward_again());
  const std::vector<float> small = on_host(gpu->gradients());
  std::size_t announced = 0;
  gpu->gradients_ready = [&](std::size_t, std::size_t count) { announced += count; };
  std::size_t backwards = 0;
  do {
    gpu->backward(10);
    ++backwards;
  } while (gpu->wants_backward_again() && backwards < 30);
  EXPECT_GT(backwards, 1u);
  EXPECT_EQ(announced, backwards * gpu->parameters().size());
  std::vector<float> large = on_host(gpu->gradients());
  for (float& value : large) {
    ASSERT_TRUE(std::isfinite(value));
    value /= 10;
  }
  EXPECT_LE(distance(large, small), 1e-2);
}

TEST_F(CudaModelTest, CutsMirrorsAndNormalisesStoredImages) {
  const ModelOptions options = exact(8);
  const auto gpu = model_of(every_layer(), options);
  std::mt19937 random(3);
  std::vector<std::uint8_t> stored(8 * 3 * 16 * 16);
  for (std::uint8_t& byte : stored) byte = static_cast<std::uint8_t>(random());
  std::vector<ImageCut> cuts;
  for (int i = 0; i < 8; ++i)
    cuts.push_back({static_cast<std::int16_t>(i - 4), static_cast<std::int16_t>(3 - i), i % 2});
  const StoredImages images{stored, cuts, {120, 110, 100}, {0.01f, 0.02f, 0.03f}};
  std::vector<float> planes;
  for (int n = 0; n < 8; ++n) {
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < 16; ++y) {
        for (int x = 0; x < 16; ++x) {
          const ImageCut& cut = cuts[static_cast<std::size_t>(n)];
          const int from_y = y + cut.shift_y, from_x = (cut.flip ? 15 - x : x) + cut.shift_x;
          const bool inside = from_y >= 0 && from_y < 16 && from_x >= 0 && from_x < 16;
          const auto channel = static_cast<std::size_t>(c);
          const auto at = static_cast<std::size_t>(((n * 3 + c) * 16 + from_y) * 16 + from_x);
          planes.push_back(inside ? (static_cast<float>(stored[at]) - images.mean[channel]) * images.scale[channel]
                                  : 0);
        }
      }
    }
  }
  const std::vector<std::int32_t> labels{0, 1, 2, 3, 4, 5, 6, 7};
  const double expected = gpu->forward(planes, labels, Mode::evaluate).loss_sum;
  EXPECT_NEAR(gpu->forward_stored(images, labels, Mode::evaluate).loss_sum, expected, 1e-6 * expected);
  gpu->prefetch(images);  // copied meanwhile: the same
  EXPECT_NEAR(gpu->forward_stored(images, labels, Mode::evaluate).loss_sum, expected, 1e-6 * expected);
}

TEST_F(CudaModelTest, NamesTheLayerWhereNumbersStopToBeFinite) {
  const ModelOptions options = exact(8);
  const auto gpu = model_of(every_layer(), options);
  const Images images(8, 16);
  gpu->forward(images.planes, images.labels, Mode::train);
  EXPECT_EQ(gpu->first_nonfinite_layer(), "");
  for (const Parameter& parameter : gpu->parameters()) {
    if (parameter.name != "c.conv.bias") continue;
    put(std::array{std::numeric_limits<float>::infinity()}, gpu->weights().subspan(parameter.offset + 3, 1));
  }
  gpu->forward(images.planes, images.labels, Mode::train);
  EXPECT_EQ(gpu->first_nonfinite_layer(), "c.conv");
}

TEST_F(CudaModelTest, DropsValuesByTheSeedAndKeepsTheMean) {
  const auto gpu = model_of(dropout_network(), exact(4));
  expect_dropout_by_seed(*gpu);
}

class CudaOptimizers : public OnGpu, public testing::WithParamInterface<const char*> {};

TEST_P(CudaOptimizers, TakeTheCpusSteps) {
  const std::vector<Parameter> parameters{
      {"a.weight", 0, 20000, {20000}, false}, {"a.bias", 20096, 10, {10}, false}, {"bn.weight", 20224, 64, {64}, true}};
  constexpr std::size_t elements = 20352;
  OptimizerOptions options;
  options.name = GetParam();
  options.weight_decay.rate = 1e-3f;
  options.weight_decay.batch_norm = false;
  options.nesterov = options.name == "sgd";
  options.rate_position = options.name == "sgd" ? "corrected" : "after";
  const auto cpu = make_optimizer(options, parameters, elements),
             gpu = make_cuda_optimizer(options, parameters, elements);
  const Buffer weights = zeroed_buffer(elements * sizeof(float)), gradients = zeroed_buffer(elements * sizeof(float));
  const std::span<float> w{weights.data<float>(), elements}, g{gradients.data<float>(), elements};
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> expected(elements), gradient(elements);
  for (float& value : expected) value = normal(random);
  put(expected, w);
  for (const float rate : {0.1f, 0.1f, 0.02f, 0.05f}) {
    for (float& value : gradient) value = normal(random);
    put(gradient, g);
    cpu->step(expected, gradient, rate);
    gpu->step(w, g, rate);
    EXPECT_LE(distance(on_host(w), expected), 1e-6);
    ASSERT_EQ(gpu->arrays().size(), cpu->arrays().size());  // and the next step takes what is there
    for (std::size_t i = 0; i < cpu->arrays().size(); ++i) {
      EXPECT_LE(distance(gpu->arrays()[i], cpu->arrays()[i]), 1e-6);
      gpu->arrays()[i][7] = cpu->arrays()[i][7] = 0.5f;
    }
    EXPECT_EQ(gpu->scalars(), cpu->scalars());
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaOptimizers, testing::Values("sgd", "lars", "adam", "rmsprop_warmup"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(CudaModelTest, ItsMemoryCopiesAddsAndDividesAsTheHostDoes) {
  const auto gpu = model_of(every_layer(), exact(8));
  constexpr std::size_t count = 100'003;
  const Memory::Values a = gpu->memory().allocate(count), b = gpu->memory().allocate(count);
  const std::span<float> first{a.get(), count}, second{b.get(), count};
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> expected(count), room;
  for (float& value : expected) value = normal(random);
  gpu->memory().copy(expected, first);
  gpu->memory().copy(first, second);
  gpu->memory().add(first, second);
  gpu->memory().divide(second, 3);
  for (float& value : expected) value = (value + value) / 3;
  EXPECT_EQ(std::memcmp(gpu->memory().readable(second, room).data(), expected.data(), second.size_bytes()), 0);
}

// The gradient comes late, in another stream.
TEST_F(CudaModelTest, AnOptimizersStepWaitsForTheStreamThatItFollows) {
  const std::vector<Parameter> parameters{{"a.weight", 0, 256, {256}, false}};
  const auto optimizer = make_cuda_optimizer({}, parameters, 256);
  const Buffer weights = zeroed_buffer(256 * sizeof(float)), gradients = zeroed_buffer(256 * sizeof(float)),
               ones = pinned_buffer(256 * sizeof(float));
  const std::span<float> w{weights.data<float>(), 256}, g{gradients.data<float>(), 256};
  std::fill_n(ones.data<float>(), 256, 1.0f);
  Stream late("late");
  optimizer->follow(late.get());
  PACELINE_CHECK_CUDA(cudaLaunchHostFunc(
      late, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }, nullptr));
  PACELINE_CHECK_CUDA(cudaMemcpyAsync(g.data(), ones.data(), ones.bytes(), cudaMemcpyDefault, late));
  optimizer->step(w, g, 0.5f);
  for (const float value : on_host(w)) ASSERT_EQ(value, -0.5f);
}

// Accuracy on images that it has seen, which either backend reaches: the loss of both follows the same course.
class CudaTraining : public OnGpu, public testing::WithParamInterface<const char*> {};

TEST_P(CudaTraining, OfAResNet18ReachesTheCpusAccuracy) {
  ModelOptions options;
  options.image_size = 16;
  options.batch_size = 32;
  options.width = 0.25;
  const Network network = build_network(options);
  const auto cpu = make_cpu_model(network, options);
  options.dtype = GetParam();
  const auto gpu = model_of(network, options);
  const auto accuracy = [&](Model& model, Optimizer& optimizer) {
    std::int64_t correct = 0;
    for (int step = 0; step < 60; ++step) {
      const Images images(32, 16, static_cast<unsigned>(step % 3));
      const Score score = model.forward(images.planes, images.labels, Mode::train);
      model.backward(1.0f / 32);
      optimizer.step(model.weights(), model.gradients(), 0.05f);
      if (step >= 57) correct += score.correct;
    }
    return static_cast<double>(correct) / 96;
  };
  const auto of_cpu = make_optimizer({}, cpu->parameters(), cpu->weights().size());
  const auto of_gpu = make_cuda_optimizer({}, gpu->parameters(), gpu->weights().size());
  const double expected = accuracy(*cpu, *of_cpu);
  EXPECT_GE(expected, 0.95);
  EXPECT_GE(accuracy(*gpu, *of_gpu), expected - 0.03);
}

INSTANTIATE_TEST_SUITE_P(All, CudaTraining, testing::Values("f32", "tf32", "bf16", "f16"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace paceline::train::cuda
