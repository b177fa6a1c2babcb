// SPDX-License-Identifier: Apache-2.0
#include "trainer/nn/models.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "trainer/core/error.h"

namespace paceline::train {
namespace {

// The published number of channels times ModelOptions::width, rounded to a multiple of 4, at least 4.
std::int64_t channels(std::int64_t published, const ModelOptions& options) {
  if (options.width == 1) return published;
  return std::max<std::int64_t>(4, 4 * std::llround(static_cast<double>(published) * options.width / 4));
}

// Deep Residual Learning for Image Recognition (He et al., arXiv 1512.03385, table 1). Version 1, the paper's, has the
// stride in the first 1×1 convolution of a bottleneck, version 1.5 in its 3×3 convolution. The names are torchvision's.
struct ResNet {
  bool bottleneck;
  std::array<int, 4> blocks;
};

int basic_block(Network& net, const ModelOptions& options, const std::string& name, int input, std::int64_t width,
                std::int64_t stride) {
  int x = net.convolution(name + ".conv1", input, width, 3, stride, false);
  x = net.batch_norm(name + ".bn1", x, true);
  x = net.convolution(name + ".conv2", x, width, 3, 1, false);
  return net.batch_norm(name + ".bn2", x, false, options.zero_gamma);
}

int bottleneck_block(Network& net, const ModelOptions& options, const std::string& name, int input, std::int64_t width,
                     std::int64_t stride) {
  int x = net.convolution(name + ".conv1", input, width, 1, options.resnet_v1 ? stride : 1, false);
  x = net.batch_norm(name + ".bn1", x, true);
  x = net.convolution(name + ".conv2", x, width, 3, options.resnet_v1 ? 1 : stride, false);
  x = net.batch_norm(name + ".bn2", x, true);
  x = net.convolution(name + ".conv3", x, 4 * width, 1, 1, false);
  return net.batch_norm(name + ".bn3", x, false, options.zero_gamma);
}

Network build(const ResNet& resnet, const ModelOptions& options) {
  Network net({options.channels, options.image_size, options.image_size});
  int x =
      net.convolution("conv1", 0, channels(64, options), options.cifar_stem ? 3 : 7, options.cifar_stem ? 1 : 2, false);
  x = net.batch_norm("bn1", x, true);
  if (!options.cifar_stem) x = net.max_pool("maxpool", x, 3, 2, 1);
  for (int stage = 0; stage < 4; ++stage) {
    for (int block = 0; block < resnet.blocks[stage]; ++block) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      const std::int64_t width = channels(64 << stage, options);
      const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      const int branch = (resnet.bottleneck ? bottleneck_block : basic_block)(net, options, name, x, width, stride);
      if (net.out(branch) != net.out(x)) {
        x = net.convolution(name + ".downsample.0", x, net.out(branch).channels, 1, stride, false);
        x = net.batch_norm(name + ".downsample.1", x, false);
      }
      x = net.add_relu(name + ".add", branch, x);
    }
  }
  x = net.average_pool("avgpool", x, net.out(x).height);
  net.linear("fc", x, options.classes);
  return net;
}

// Very Deep Convolutional Networks for Large-Scale Image Recognition (Simonyan and Zisserman, arXiv 1409.1556, table
// 1): the number of 3×3 convolutions in each stage. The form for small images has a classifier of one linear layer.
struct Vgg {
  std::array<int, 5> convolutions;
  bool batch_norm;
};

Network build(const Vgg& vgg, const ModelOptions& options) {
  constexpr std::array<std::int64_t, 5> widths{64, 128, 256, 512, 512};
  Network net({options.channels, options.image_size, options.image_size});
  int x = 0;
  int index = 0;  // torchvision numbers all modules of `features`
  const auto name = [&index] { return "features." + std::to_string(index++); };
  for (std::size_t stage = 0; stage < widths.size(); ++stage) {
    for (int i = 0; i < vgg.convolutions[stage]; ++i) {
      x = net.convolution(name(), x, channels(widths[stage], options), 3, 1, true);
      if (vgg.batch_norm) {
        x = net.batch_norm(name(), x, true);
        ++index;  // its ReLU
      } else {
        x = net.relu(name(), x);
      }
    }
    x = net.max_pool(name(), x, 2, 2, 0);
  }
  const std::int64_t side = net.out(x).height;
  if (options.cifar_stem) {
    if (side > 1) x = net.average_pool("avgpool", x, side);
    net.linear("classifier", x, options.classes);
    return net;
  }
  if (side % 7 != 0)
    throw Error("‹model› " + options.name, "takes images of 224 × 224 pixels or a multiple", "give ‹image-size› 224",
                Status::usage);
  if (side > 7) x = net.average_pool("avgpool", x, side / 7);
  x = net.linear("classifier.0", x, channels(4096, options));
  x = net.relu("classifier.1", x);
  x = net.dropout("classifier.2", x, 0.5f);
  x = net.linear("classifier.3", x, channels(4096, options));
  x = net.relu("classifier.4", x);
  x = net.dropout("classifier.5", x, 0.5f);
  net.linear("classifier.6", x, options.classes);
  return net;
}

// VGG-16 for CIFAR as in torch.ch's blog (Zagoruyko, "92.45% on CIFAR-10 in Torch") and Chainer's examples/cifar, with
// the names of the latter: convolutions without bias, each with batch norm and ReLU, a dropout between the convolutions
// of a stage, two linear layers without bias. It takes images of any size; the first linear layer grows with them.
Network build_lecture_vgg(const ModelOptions& options) {
  constexpr std::array<std::int64_t, 5> widths{64, 128, 256, 512, 512};
  constexpr std::array<int, 5> convolutions{2, 2, 3, 3, 3};
  Network net({options.channels, options.image_size, options.image_size});
  int x = 0;
  for (std::size_t stage = 0; stage < widths.size(); ++stage) {
    const std::string block = "block" + std::to_string(stage + 1);
    for (int i = 1; i <= convolutions[stage]; ++i) {
      const std::string name = block + "_" + std::to_string(i);
      x = net.convolution(name + ".conv", x, channels(widths[stage], options), 3, 1, false);
      x = net.batch_norm(name + ".bn", x, true);
      if (i < convolutions[stage]) x = net.dropout(name + ".dropout", x, stage == 0 ? 0.3f : 0.4f);
    }
    x = net.max_pool(block + ".pool", x, 2, 2, 0);
  }
  x = net.dropout("dropout1", x, 0.5f);
  x = net.linear("fc1", x, channels(512, options), false);
  x = net.batch_norm("bn_fc1", x, true);
  x = net.dropout("dropout2", x, 0.5f);
  net.linear("fc2", x, options.classes, false);
  return net;
}

struct Entry {
  const char* name;
  std::function<Network(const ModelOptions&)> build;
};

template <class Family>
Entry entry(const char* name, Family family) {
  return {name, [family](const ModelOptions& options) { return build(family, options); }};
}

const std::vector<Entry>& table() {
  static const std::vector<Entry> entries{
      entry("resnet18", ResNet{false, {2, 2, 2, 2}}),  entry("resnet34", ResNet{false, {3, 4, 6, 3}}),
      entry("resnet50", ResNet{true, {3, 4, 6, 3}}),   entry("resnet101", ResNet{true, {3, 4, 23, 3}}),
      entry("resnet152", ResNet{true, {3, 8, 36, 3}}), entry("vgg11", Vgg{{1, 1, 2, 2, 2}, false}),
      entry("vgg13", Vgg{{2, 2, 2, 2, 2}, false}),     entry("vgg16", Vgg{{2, 2, 3, 3, 3}, false}),
      entry("vgg19", Vgg{{2, 2, 4, 4, 4}, false}),     entry("vgg11_bn", Vgg{{1, 1, 2, 2, 2}, true}),
      entry("vgg13_bn", Vgg{{2, 2, 2, 2, 2}, true}),   entry("vgg16_bn", Vgg{{2, 2, 3, 3, 3}, true}),
      entry("vgg19_bn", Vgg{{2, 2, 4, 4, 4}, true}),   {"vgg_lecture", build_lecture_vgg},
  };
  return entries;
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Entry& entry : table()) names.emplace_back(entry.name);
  return names;
}

Network build_network(const ModelOptions& options) {
  if (!(options.width > 0)) throw Error("‹width›", "not above 0", "give a number above 0", Status::usage);
  std::string known;
  for (const Entry& entry : table()) {
    if (options.name == entry.name) return entry.build(options);
    known += known.empty() ? "" : ", ";
    known += entry.name;
  }
  throw Error("‹model› " + options.name, "unknown model", "choose one of " + known, Status::usage);
}

}  // namespace paceline::train
