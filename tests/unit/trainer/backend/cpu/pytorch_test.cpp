// SPDX-License-Identifier: Apache-2.0
// Whole networks against PyTorch: loss, logits, every gradient, running statistics and the losses of ten steps, which
// tests/data/pytorch/make_dump.py computed in float64. The weights and images come from its formulas.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "tests/unit/trainer/backend/reference/tensor.h"
#include "trainer/backend/cpu/layers.h"
#include "trainer/backend/cpu/onednn.h"
#include "trainer/nn/model.h"
#include "trainer/optim/sgd.h"

namespace paceline::train {
namespace {

using reference::relative_error;

constexpr double gradient_bound =
    5e-5;  // ‖ours − PyTorch's‖₂ ÷ ‖PyTorch's‖₂ of each tensor; 2.6e-5 was seen, of 4 numbers
constexpr double loss_bound = 2e-6;
constexpr double by_winograd = 4;  // times the rounding error, and so the bounds

// make_dump.py's numbers.
std::vector<std::uint64_t> bits(const std::string& name, std::size_t count) {
  std::uint64_t start = 0xcbf29ce484222325;
  for (const char c : name) start = (start ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::vector<std::uint64_t> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t z = start + (i + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    result[i] = (z ^ (z >> 31)) >> 40;
  }
  return result;
}

double uniform(std::uint64_t value) { return static_cast<double>(value) * 0x1p-23 - 1; }

std::vector<float> weights_of(const Parameter& parameter) {
  const auto count = static_cast<std::size_t>(
      std::accumulate(parameter.shape.begin(), parameter.shape.end(), std::int64_t{1}, std::multiplies<>()));
  const bool weight = parameter.name.ends_with(".weight");
  const double scale = parameter.batch_norm ? (weight ? 0.25 : 0.1)
                       : weight
                           ? std::sqrt(6 / static_cast<double>(count / static_cast<std::size_t>(parameter.shape[0])))
                           : 0.1;
  const double center = parameter.batch_norm && weight ? 1 : 0;
  std::vector<float> values;
  for (const std::uint64_t value : bits(parameter.name, count)) {
    values.push_back(static_cast<float>(center + uniform(value) * scale));
  }
  return values;
}

struct Dump {
  nlohmann::json header;
  std::map<std::string, std::vector<float>> tensors;

  explicit Dump(const std::string& model) {
    std::ifstream in(std::string(PACELINE_TEST_DATA) + "/pytorch/" + model + ".dump", std::ios::binary);
    std::string line;
    if (!std::getline(in, line)) throw std::runtime_error("no dump of " + model);
    header = nlohmann::json::parse(line);
    for (const auto& tensor : header.at("tensors")) {
      std::vector<float>& values = tensors[tensor.at("name")];
      values.resize(tensor.at("count"));
      in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
    }
    if (!in || in.peek() != EOF) throw std::runtime_error("dump of " + model + " has another length");
  }
};

// A network that the files have. `file` is that of the dump.
struct Case {
  const char *file, *network;
  double width;
  double later_loss_bound;  // of the steps after the first, which include the rounding of all earlier ones
  ModelOptions options(const Dump& dump, bool winograd) const {
    ModelOptions options;
    options.name = network;
    options.width = width;
    options.batch_size = dump.header.at("batch");
    options.winograd = winograd;
    return options;
  }
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.file; }
};
constexpr Case narrow_resnet{"resnet18", "resnet18", 1.0 / 16, 1e-3}, narrow_vgg{"vgg16", "vgg16", 1.0 / 16, 1e-3};
// So wide that the 3×3 convolutions of its last stages use Winograd's algorithm, which the others do not. Its narrowest
// layer fills one block of 16 channels: with AVX-512, layers after a narrower one do without blocks.
constexpr Case wider_resnet{"resnet18_wider", "resnet18", 1.0 / 4, 4e-3};

// The values of a tensor that a dump has.
std::vector<float> sampled(const std::vector<float>& values, std::size_t every) {
  if (values.size() <= 4096) return values;
  std::vector<float> result;
  for (std::size_t i = 0; i < values.size(); i += every) result.push_back(values[i]);
  return result;
}

struct Batch {
  std::vector<float> images;
  std::vector<std::int32_t> labels;

  Batch(const nlohmann::json& header, int step) {
    const std::string which = std::to_string(header.at("seed").get<int>()) + "-" + std::to_string(step);
    const std::size_t samples = header.at("batch");
    for (const std::uint64_t value : bits("images-" + which, samples * 3 * 32 * 32)) {
      images.push_back(static_cast<float>(uniform(value)));
    }
    for (const std::uint64_t value : bits("labels-" + which, samples)) {
      labels.push_back(static_cast<std::int32_t>(value % 10));
    }
  }
};

// The network, and whether 3×3 convolutions may use Winograd's algorithm.
class AgainstPyTorch : public testing::TestWithParam<std::tuple<Case, bool>> {};

TEST_P(AgainstPyTorch, HasItsLossesGradientsAndStatistics) {
  const auto [c, winograd] = GetParam();
  const Dump dump(c.file);
  const ModelOptions options = c.options(dump, winograd);
  const double times = winograd ? by_winograd : 1;
  const std::size_t every = dump.header.value("every", std::size_t{1});
  const auto model = make_cpu_model(options);
  for (const Parameter& parameter : model->parameters()) {
    model->from_plain(parameter, weights_of(parameter), model->weights());
  }
  Sgd sgd(model->weights().size(), {dump.header.at("momentum"), dump.header.at("weight_decay")});
  const auto samples = static_cast<double>(options.batch_size);
  const std::vector<double> losses = dump.header.at("losses");
  ASSERT_EQ(losses.size(), 10u);
  for (int step = 0; step < 10; ++step) {
    const Batch batch(dump.header, step);
    const Score score = model->forward(batch.images, batch.labels, Mode::train);
    // The first loss is of equal weights.
    const double loss = losses[static_cast<std::size_t>(step)];
    EXPECT_NEAR(score.loss_sum / samples, loss, (step == 0 ? times * loss_bound : c.later_loss_bound) * loss)
        << "step " << step;
    model->backward(static_cast<float>(1 / samples));
    if (step == 0) {
      std::size_t compared = 0;
      for (const Parameter& parameter : model->parameters()) {
        const std::vector<float>& expected = dump.tensors.at("gradient of " + parameter.name);
        EXPECT_LE(relative_error(sampled(model->to_plain(parameter, model->gradients()), every), expected),
                  times * gradient_bound)
            << parameter.name;
        ++compared;
      }
      const bool statistics = dump.tensors.contains("bn1.running_mean");
      EXPECT_EQ(dump.tensors.size(), 1 + compared + (statistics ? 2 * 20 : 0))
          << "tensors that nothing was compared with";
    }
    sgd.step(model->weights(), model->gradients(), dump.header.at("rate"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, AgainstPyTorch,
                         testing::Combine(testing::Values(narrow_resnet, narrow_vgg, wider_resnet), testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).file) +
                                  (std::get<1>(info.param) ? "_winograd" : "");
                         });

// Otherwise the comparisons with Winograd's algorithm would be the same as those without it.
TEST(WiderNetwork, UsesWinogradsAlgorithm) {
  if (winograd_code() == nullptr) GTEST_SKIP() << "oneDNN decides here";
  const Dump dump(wider_resnet.file);
  const Batch batch(dump.header, 0);
  std::vector<double> losses;
  for (const bool winograd : {false, true}) {
    const auto model = make_cpu_model(wider_resnet.options(dump, winograd));
    losses.push_back(model->forward(batch.images, batch.labels, Mode::train).loss_sum);
  }
  EXPECT_NE(losses[0], losses[1]);
}

// The flat statistics of a model are those of its batch norms in order, mean then variance, each from a cache line on.
class RunningStatistics : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(All, RunningStatistics, testing::Bool(),
                         [](const auto& info) { return info.param ? "winograd" : "direct"; });

TEST_P(RunningStatistics, MoveAsPyTorchsDo) {
  const Dump dump(wider_resnet.file);
  const auto model = make_cpu_model(wider_resnet.options(dump, GetParam()));
  std::vector<std::string> norms;
  std::vector<std::size_t> channels;
  for (const Parameter& parameter : model->parameters()) {
    model->from_plain(parameter, weights_of(parameter), model->weights());
    if (!parameter.batch_norm || !parameter.name.ends_with(".weight")) continue;
    norms.push_back(parameter.name.substr(0, parameter.name.size() - 7));
    channels.push_back(static_cast<std::size_t>(parameter.shape[0]));
  }
  ASSERT_EQ(norms.size(), 20u);
  const Batch batch(dump.header, 0);
  model->forward(batch.images, batch.labels, Mode::train);
  std::size_t next = 0;
  for (std::size_t i = 0; i < norms.size(); ++i) {
    for (const char* which : {".running_mean", ".running_var"}) {
      const std::span<const float> ours = model->statistics().subspan(next, channels[i]);
      EXPECT_LE(relative_error(ours, dump.tensors.at(norms[i] + which)), by_winograd * gradient_bound)
          << norms[i] << which;
      next += (channels[i] + 15) / 16 * 16;
    }
  }
  EXPECT_EQ(next, model->statistics().size());
}

}  // namespace
}  // namespace paceline::train
