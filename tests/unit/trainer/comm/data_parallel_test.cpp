// SPDX-License-Identifier: Apache-2.0
// N ranks with a batch of b each and the mean of their gradients are one rank with a batch of N b. With frozen or
// synchronised batch norms this is exact mathematics, so in float64 only rounding may remain. mpirun starts four ranks,
// of which a test uses the first N; rank 0 compares.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "tests/unit/trainer/backend/reference/reference_model.h"
#include "tests/unit/trainer/some_ranks.h"
#include "trainer/comm/algorithms.h"
#include "trainer/nn/models.h"
#include "trainer/optim/sgd.h"

namespace paceline::train {
namespace {

using reference::ReferenceModel;
using reference::relative_error;
using reference::Tensor;

int rank() {
  int result = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &result);
  return result;
}

std::vector<float> normal_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<std::int32_t> labels_of(std::size_t count) {
  std::vector<std::int32_t> labels(count);
  for (std::size_t i = 0; i < count; ++i) labels[i] = static_cast<std::int32_t>(i * 7 % 10);
  return labels;
}

Network residual_network() {
  Network net({3, 8, 8});
  int x = net.batch_norm("bn1", net.convolution("conv1", 0, 8, 3, 1, false), true);
  int y = net.batch_norm("a.bn1", net.convolution("a.conv1", x, 8, 3, 1, false), true);
  y = net.batch_norm("a.bn2", net.convolution("a.conv2", y, 8, 3, 1, false), false);
  x = net.max_pool("maxpool", net.add_relu("a.add", y, x), 3, 2, 1);
  y = net.batch_norm("b.bn1", net.convolution("b.conv1", x, 16, 3, 2, false), true);
  y = net.batch_norm("b.bn2", net.convolution("b.conv2", y, 16, 3, 1, false), false);
  x = net.batch_norm("b.down.1", net.convolution("b.down.0", x, 16, 1, 2, false), false);
  net.linear("fc", net.average_pool("avgpool", net.add_relu("b.add", y, x), 2), 10);
  return net;
}

// 20 steps. The communicators take turns to average the gradients, on one host and on two.
class DataParallelInFloat64 : public testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(DataParallelInFloat64, TwentyStepsEqualThoseOfOneRankWithTheWholeBatch) {
  const auto [size, frozen] = GetParam();
  const SomeRanks some(size);
  if (!some) return;
  constexpr std::int64_t b = 2;
  const Network network = residual_network();
  const auto image = static_cast<std::size_t>(network.layers()[0].out.size());
  const std::vector<std::int32_t> labels = labels_of(static_cast<std::size_t>(size * b));
  const auto images_of = [&](unsigned step, int first, int ranks) {
    const std::vector<float> all = normal_values(static_cast<std::size_t>(size * b) * image, step);
    Tensor images(ranks * b, network.layers()[0].out);
    const auto begin = all.begin() + first * b * static_cast<std::ptrdiff_t>(image);
    images.values.assign(begin, begin + static_cast<std::ptrdiff_t>(images.values.size()));
    return images;
  };

  ReferenceModel parallel(network, 1, frozen);
  if (!frozen) {
    parallel.sum_over_ranks = [&](std::span<double> sums) {
      MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(sums.size()), MPI_DOUBLE, MPI_SUM, some.comm());
    };
  }
  const std::vector<SomeRanks::Way> ways = some.ways();
  const Element f64("f64");
  for (unsigned step = 0; step < 20; ++step) {
    const auto ranks = ways[step % ways.size()].ranks(some.comm());
    parallel.forward(images_of(step, ranks->rank, 1),
                     std::span(labels).subspan(static_cast<std::size_t>(ranks->rank * b), b), Mode::train);
    parallel.backward(1.0 / b);
    std::vector<double> flat;
    for (const auto& [name, gradient] : parallel.gradients) flat.insert(flat.end(), gradient.begin(), gradient.end());
    make_allreduce(ways[step % ways.size()].name, *ranks)
        ->reduce({f64, reinterpret_cast<std::byte*>(flat.data()), flat.size(), static_cast<float>(size)});
    auto next = flat.begin();
    for (auto& [name, gradient] : parallel.gradients) {
      std::copy_n(next, gradient.size(), gradient.begin());
      next += static_cast<std::ptrdiff_t>(gradient.size());
    }
    parallel.step(0.05, 0.9, 5e-4);
  }
  if (rank() > 0) return;
  ReferenceModel single(network, 1, frozen);
  for (unsigned step = 0; step < 20; ++step) {
    single.forward(images_of(step, 0, size), labels, Mode::train);
    single.backward(1.0 / static_cast<double>(size * b));
    single.step(0.05, 0.9, 5e-4);
  }
  const ReferenceModel start(network, 1, frozen);
  for (const auto& [name, w] : single.weights) {
    EXPECT_LE(relative_error(parallel.weights[name], w), 1e-10) << name;
    EXPECT_GT(relative_error(start.weights.at(name), w), 1e-4) << name << " was not trained";
  }
}

INSTANTIATE_TEST_SUITE_P(FrozenAndSynchronised, DataParallelInFloat64,
                         testing::Combine(testing::Values(1, 2, 3, 4), testing::Bool()));

// One step, repeated with each communicator, on one host and on two.
class DataParallelInFloat32 : public testing::TestWithParam<int> {};

TEST_P(DataParallelInFloat32, AStepOfResNet18EqualsThatOfOneRankWithTheWholeBatch) {
  const int size = GetParam();
  const SomeRanks some(size);
  if (!some) return;
  constexpr std::int64_t b = 4;
  const auto global = static_cast<std::size_t>(size * b);
  ModelOptions options;
  options.width = 0.5;  // every communicator sends the gradients once
  options.freeze_batch_norm = true;
  options.batch_size = b;
  const auto parallel = make_cpu_model(options);
  constexpr std::size_t image = 3 * 32 * 32;
  const std::vector<float> images = normal_values(global * image, 1);
  const std::vector<std::int32_t> labels = labels_of(global);
  const auto step = [](Model& model) {
    Sgd(model.weights().size(), {0.9f, 5e-4f, false}).step(model.weights(), model.gradients(), 0.01f);
  };

  options.batch_size = size * b;
  const auto single = rank() == 0 ? make_cpu_model(options) : nullptr;
  if (single) {
    single->forward(images, labels, Mode::train);
    single->backward(1.0f / static_cast<float>(global));
    step(*single);
  }
  const auto first = static_cast<std::size_t>(rank()) * b;
  parallel->forward(std::span(images).subspan(first * image, b * image), std::span(labels).subspan(first, b),
                    Mode::train);
  parallel->backward(1.0f / b);
  const std::vector<float> weights(parallel->weights().begin(), parallel->weights().end());
  const std::vector<float> gradients(parallel->gradients().begin(), parallel->gradients().end());
  const Element f32("f32");
  for (const SomeRanks::Way& way : some.ways()) {
    std::ranges::copy(weights, parallel->weights().begin());
    std::ranges::copy(gradients, parallel->gradients().begin());
    const auto ranks = way.ranks(some.comm());
    const std::span<float> mean = parallel->gradients();
    make_allreduce(way.name, *ranks)
        ->reduce({f32, reinterpret_cast<std::byte*>(mean.data()), mean.size(), static_cast<float>(size)});
    step(*parallel);
    if (!single) continue;
    for (std::size_t i = 0; i < single->parameters().size(); ++i) {
      const Parameter& p = single->parameters()[i];
      const std::vector<float> one = single->to_plain(p, single->weights());
      const std::vector<float> many = parallel->to_plain(parallel->parameters()[i], parallel->weights());
      EXPECT_LE(relative_error(many, one), 1e-5) << p.name << " by " << way.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, DataParallelInFloat32, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace paceline::train

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int result = size == 4 ? RUN_ALL_TESTS() : 1;
  MPI_Finalize();
  return result;
}
