// SPDX-License-Identifier: Apache-2.0
// The published networks: their sizes, operations and initial weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "trainer/core/error.h"
#include "trainer/nn/init.h"
#include "trainer/nn/layer_cost.h"
#include "trainer/nn/models.h"

namespace paceline::train {
namespace {

ModelOptions imagenet(const std::string& name) {
  ModelOptions options;
  options.name = name;
  options.image_size = 224;
  options.classes = 1000;
  options.cifar_stem = false;
  return options;
}

struct Published {
  const char* name;
  double forward_gmac, train_gflop;  // 0: not published
  std::int64_t parameters;           // torchvision's models
};

class PublishedNetwork : public testing::TestWithParam<Published> {};

TEST_P(PublishedNetwork, HasThePublishedOperationsAndParameters) {
  const Network network = build_network(imagenet(GetParam().name));
  EXPECT_EQ(network.parameter_count(), GetParam().parameters);
  if (GetParam().forward_gmac > 0) {
    EXPECT_NEAR(network.forward_flops() / 2e9, GetParam().forward_gmac, 0.0005);
    EXPECT_NEAR(network.train_flops() / 1e9, GetParam().train_gflop, 0.005);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PublishedNetwork,
                         testing::Values(Published{"resnet18", 1.814, 10.65, 11689512},  //
                                         Published{"resnet34", 0, 0, 21797672},          //
                                         Published{"resnet50", 4.089, 24.30, 25557032},  //
                                         Published{"resnet101", 0, 0, 44549160},         //
                                         Published{"resnet152", 11.514, 68.85, 60192808},
                                         Published{"vgg11", 0, 0, 132863336},           //
                                         Published{"vgg13", 0, 0, 133047848},           //
                                         Published{"vgg16", 15.470, 92.65, 138357544},  //
                                         Published{"vgg19", 0, 0, 143667240},           //
                                         Published{"vgg11_bn", 0, 0, 132868840},        //
                                         Published{"vgg13_bn", 0, 0, 133053736},        //
                                         Published{"vgg16_bn", 0, 0, 138365992},        //
                                         Published{"vgg19_bn", 0, 0, 143678248}),
                         [](const auto& info) { return std::string(info.param.name); });

// 4 → 8 channels on 6 × 6 pixels, batch 2, fp32: x 576 bytes, y 1152, weights 4 × 8 × 9 = 288 numbers, or 576 bytes for
// each image; 8 × 36 × 36 = 10,368 multiply-adds.
TEST(LayerCost, CountsEachTensorOnce) {
  Network network({4, 6, 6});
  const int conv = network.convolution("conv", 0, 8, 3, 1, false);
  const int norm = network.batch_norm("norm", conv, true);
  const int sum = network.add_relu("sum", norm, conv);
  network.linear("linear", network.average_pool("pool", sum, 6), 10);
  const auto cost = [&](std::size_t layer, std::int64_t batch = 2, std::size_t element = 4) {
    const Layer& of = network.layers()[layer];
    return cost_of(of, network.has_data_gradient(of), batch, element);
  };
  EXPECT_EQ(kind_name(network.layers()[1]), "convolution 3×3");
  EXPECT_EQ(cost(1).forward.flops, 2 * 10368);
  EXPECT_EQ(cost(1).forward.bytes, 576 + 1152 + 576);
  EXPECT_EQ(cost(1).backward.flops, 2 * 10368);  // the image has no gradient
  EXPECT_EQ(cost(1).backward.bytes, 576 + 1152 + 576);
  EXPECT_EQ(cost_of(network.layers()[1], true, 2, 4).backward.flops, 4 * 10368);
  EXPECT_EQ(cost_of(network.layers()[1], true, 2, 4).backward.bytes, 2 * 576 + 1152 + 2 * 576);
  EXPECT_EQ(cost_of(network.layers()[1], true, 2, 2).backward.bytes, 2 * 288 + 576 + 288 + 576);  // bf16, fp32 gradient
  EXPECT_EQ(kind_name(network.layers()[2]), "batch norm and ReLU");
  EXPECT_EQ(cost(2).forward.bytes, 2 * 1152);
  EXPECT_EQ(cost(2).backward.bytes, 3 * 1152);
  EXPECT_EQ(cost(2).forward.flops, 0);
  EXPECT_EQ(cost(3).forward.bytes, 3 * 1152);
  EXPECT_EQ(cost(4).backward.bytes, 1152 + 32);
  EXPECT_EQ(cost(5).forward.flops, 2 * 80);
  EXPECT_EQ(cost(5).forward.bytes, 32 + 40 + 4 * 90 / 2);
}

// The costs of all layers are those of the network.
TEST(LayerCost, AddsUpToTheNetworksOperations) {
  for (const char* name : {"resnet50", "vgg16_bn"}) {
    const Network network = build_network(imagenet(name));
    double forward = 0, backward = 0;
    for (const Layer& layer : network.layers()) {
      const LayerCost cost = cost_of(layer, network.has_data_gradient(layer), 1, 4);
      forward += cost.forward.flops;
      backward += cost.backward.flops;
    }
    EXPECT_DOUBLE_EQ(forward, network.forward_flops()) << name;
    EXPECT_DOUBLE_EQ(forward + backward, network.train_flops()) << name;
  }
}

// With the stride in the first 1×1 convolution there are fewer operations and the same parameters.
TEST(Network, ResNet50Version1HasFewerOperations) {
  ModelOptions options = imagenet("resnet50");
  options.resnet_v1 = true;
  const Network network = build_network(options);
  EXPECT_EQ(network.parameter_count(), 25557032);
  EXPECT_NEAR(network.forward_flops() / 2e9, 3.858, 0.0005);
  EXPECT_NEAR(network.train_flops() / 1e9, 22.91, 0.005);
  for (const Layer& layer : network.layers()) {
    if (layer.name == "layer2.0.conv1" || layer.name == "layer2.0.conv2") {
      EXPECT_EQ(layer.stride, layer.name.ends_with("conv1") ? 2 : 1);
    }
  }
}

// Chainer's examples/cifar/models/VGG.py on images of 256 pixels: 31.50 M parameters.
TEST(Network, TheLecturesVggHasThePublishedParametersAndOperations) {
  ModelOptions options;
  options.name = "vgg_lecture";
  options.image_size = 256;
  const Network network = build_network(options);
  EXPECT_EQ(network.parameter_count(), 31502272);
  EXPECT_NEAR(network.forward_flops() / 2e9, 20.06, 0.005);
  EXPECT_NEAR(network.train_flops() / 1e9, 120.1, 0.05);
  std::vector<float> drops;
  for (const Layer& layer : network.layers()) {
    if (layer.kind == LayerKind::dropout) drops.push_back(layer.drop);
    EXPECT_FALSE(layer.bias) << layer.name;
  }
  EXPECT_THAT(drops, testing::ElementsAre(0.3f, 0.4f, 0.4f, 0.4f, 0.4f, 0.4f, 0.4f, 0.4f, 0.5f, 0.5f));
  options.image_size = 32;
  EXPECT_EQ(build_network(options).parameter_count(), 31502272 - 63 * 512 * 512);
}

TEST(Network, ZeroGammaIsTheScaleOfTheLastBatchNormOfEachBlock) {
  for (const char* model : {"resnet18", "resnet50"}) {
    ModelOptions options = imagenet(model);
    options.zero_gamma = true;
    const std::string last = options.name == "resnet18" ? ".bn2" : ".bn3";
    const Network network = build_network(options);
    int zeros = 0;
    for (const Layer& layer : network.layers()) {
      if (layer.kind != LayerKind::batch_norm) continue;
      const float scale = initial_values(layer, layer.parameters()[0], 1)[0];
      EXPECT_EQ(scale, layer.name.ends_with(last) ? 0.0f : 1.0f) << layer.name;
      zeros += scale == 0;
    }
    EXPECT_EQ(zeros, options.name == "resnet18" ? 8 : 16);
  }
}

TEST(Network, WidthScalesTheChannelsToMultiplesOfFour) {
  ModelOptions options;
  options.width = 1.0 / 16;
  const Network narrow = build_network(options);
  EXPECT_EQ(narrow.layers()[1].out.channels, 4);
  EXPECT_EQ(narrow.layers().back().in.channels, 32);
  options.width = 0.01;
  EXPECT_EQ(build_network(options).layers()[1].out.channels, 4) << "the least";
  options.width = 2;
  EXPECT_EQ(build_network(options).layers()[1].out.channels, 128);
  options.width = 0;
  EXPECT_THROW(build_network(options), Error);
}

TEST(Network, NamesItsParametersAsTorchvisionDoes) {
  std::set<std::string> names;
  for (const char* model : {"resnet18", "resnet50", "vgg16_bn"}) {
    const Network network = build_network(imagenet(model));
    for (const Layer& layer : network.layers()) {
      for (const ParameterShape& parameter : layer.parameters()) names.insert(parameter.name);
    }
  }
  for (const char* name : {"conv1.weight", "layer1.0.bn1.bias", "layer2.0.downsample.1.weight", "layer3.5.conv3.weight",
                           "fc.bias", "features.0.weight", "features.41.bias", "classifier.6.weight"}) {
    EXPECT_THAT(names, testing::Contains(name));
  }
}

TEST(Network, RefusesUnknownNamesAndListsTheKnownOnes) {
  ModelOptions options;
  options.name = "resnet19";
  EXPECT_THAT([&] { build_network(options); },
              testing::ThrowsMessage<Error>(
                  testing::AllOf(testing::HasSubstr("resnet19"), testing::HasSubstr("resnet18, resnet34"))));
}

TEST(Network, RefusesImagesThatAreTooSmallForItsPooling) {
  ModelOptions options;
  options.name = "vgg16_bn";
  options.image_size = 16;
  EXPECT_THROW(build_network(options), Error);
}

// Larger images are averaged to 7 × 7 before the classifier.
TEST(Network, VggForLargerImagesHasTheSameClassifier) {
  ModelOptions options = imagenet("vgg11");
  options.width = 1.0 / 16;
  const std::int64_t parameters = build_network(options).parameter_count();
  options.image_size = 448;
  EXPECT_EQ(build_network(options).parameter_count(), parameters);
  options.image_size = 256;
  EXPECT_THROW(build_network(options), Error);
}

Layer convolution(std::int64_t in, std::int64_t out) {
  Network network({in, 8, 8});
  network.convolution("c", 0, out, 3, 1, true);
  return network.layers().back();
}

TEST(Initialisation, DependsOnSeedAndNameAlone) {
  const Layer layer = convolution(16, 32);
  const ParameterShape shape = layer.parameters()[0];
  EXPECT_EQ(initial_values(layer, shape, 1), initial_values(layer, shape, 1));
  EXPECT_NE(initial_values(layer, shape, 1), initial_values(layer, shape, 2));
  EXPECT_NE(initial_values(layer, {"d.weight", shape.shape}, 1), initial_values(layer, shape, 1));
}

TEST(Initialisation, IsTheSameOnEveryMachine) {
  const Layer layer = convolution(16, 32);
  const std::vector<float> values = initial_values(layer, layer.parameters()[0], 1);
  EXPECT_FLOAT_EQ(values[0], 0.07860366f);
  EXPECT_FLOAT_EQ(values.back(), -0.06665692f);
}

TEST(Initialisation, OfConvolutionsHasVarianceTwoOverFanOut) {
  const Layer layer = convolution(64, 128);
  const std::vector<float> values = initial_values(layer, layer.parameters()[0], 1);
  double sum = 0, squares = 0, fourth = 0;
  for (const double v : values) {
    sum += v;
    squares += v * v;
    fourth += v * v * v * v;
  }
  const auto count = static_cast<double>(values.size());
  const double variance = 2.0 / (9 * 128);
  EXPECT_NEAR(sum / count, 0, 4 * std::sqrt(variance / count));
  EXPECT_NEAR(squares / count, variance, 4 * variance * std::sqrt(2 / count));
  EXPECT_NEAR(fourth / (variance * variance * count), 3, 4 * std::sqrt(96 / count));  // a normal's fourth moment
  EXPECT_THAT(initial_values(layer, layer.parameters()[1], 1), testing::Each(0.0f));
}

}  // namespace
}  // namespace paceline::train
