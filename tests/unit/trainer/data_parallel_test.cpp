// Two ranks with a batch of b each and the mean of their gradients are one rank with a batch of 2b. With frozen batch
// norms this is exact mathematics: in float64 nothing may be left but rounding. Run by mpirun with two ranks; each test
// compares on rank 0, and every rank computes the same so that none waits in vain.
#include <gtest/gtest.h>
#include <mpi.h>

#include <random>

#include "tests/unit/trainer/reference/reference_model.h"
#include "trainer/nn/models.h"
#include "trainer/optim/sgd.h"

namespace paceline::train {
namespace {

using reference::ReferenceModel;
using reference::relative_error;
using reference::Tensor;

constexpr int ranks = 2;

int rank() {
  int result = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &result);
  return result;
}

void average(std::vector<double>& values) {
  MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (double& value : values) value /= ranks;
}

void average(std::span<float> values) {
  MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (float& value : values) value /= ranks;
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

TEST(DataParallel, InFloat64TwentyStepsOfTwoRanksAreThoseOfOneWithTheWholeBatch) {
  ASSERT_EQ(ranks, [] {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
  }()) << "run by mpirun -n 2";
  constexpr std::int64_t b = 4;
  const Network network = residual_network();
  const std::size_t image = static_cast<std::size_t>(network.layers()[0].out.size());
  ReferenceModel parallel(network, 1, true), single(network, 1, true);
  const std::vector<std::int32_t> labels = labels_of(ranks * b);
  const std::span<const std::int32_t> own_labels(labels.data() + rank() * b, b);
  for (unsigned step = 0; step < 20; ++step) {
    const std::vector<float> images = normal_values(ranks * b * image, step);
    Tensor whole(ranks * b, network.layers()[0].out), own(b, network.layers()[0].out);
    whole.values.assign(images.begin(), images.end());
    const auto first = images.begin() + rank() * b * static_cast<std::ptrdiff_t>(image);
    own.values.assign(first, first + b * static_cast<std::ptrdiff_t>(image));

    parallel.forward(own, own_labels, Mode::train);
    parallel.backward(1.0 / b);
    for (auto& [name, gradient] : parallel.gradients) average(gradient);
    parallel.step(0.05, 0.9, 5e-4);

    single.forward(whole, labels, Mode::train);
    single.backward(1.0 / (ranks * b));
    single.step(0.05, 0.9, 5e-4);
  }
  const ReferenceModel start(network, 1, true);
  for (const auto& [name, w] : single.weights) {
    EXPECT_LE(relative_error(parallel.weights[name], w), 1e-10) << name;
    EXPECT_GT(relative_error(start.weights.at(name), w), 1e-4) << name << " was not trained";
  }
}

TEST(DataParallel, InFloat32AStepOfResNet18OnTwoRanksIsThatOfOneWithTheWholeBatch) {
  constexpr std::int64_t b = 8;
  ModelOptions options;
  options.freeze_batch_norm = true;
  options.batch_size = b;
  const auto parallel = make_cpu_model(options);
  options.batch_size = ranks * b;
  const auto single = make_cpu_model(options);
  constexpr std::size_t image = 3 * 32 * 32;
  const std::vector<float> images = normal_values(ranks * b * image, 1);
  const std::vector<std::int32_t> labels = labels_of(ranks * b);
  const SgdOptions sgd{0.9f, 5e-4f, false};

  const std::span<const float> own_images(images.data() + static_cast<std::size_t>(rank()) * b * image, b * image);
  parallel->forward(own_images, std::span(labels).subspan(static_cast<std::size_t>(rank()) * b, b), Mode::train);
  parallel->backward(1.0f / b);
  average(parallel->gradients());
  Sgd(parallel->weights().size(), sgd).step(parallel->weights(), parallel->gradients(), 0.01f);

  single->forward(images, labels, Mode::train);
  single->backward(1.0f / (ranks * b));
  Sgd(single->weights().size(), sgd).step(single->weights(), single->gradients(), 0.01f);

  for (std::size_t i = 0; i < single->parameters().size(); ++i) {
    const Parameter& p = single->parameters()[i];
    const std::vector<float> one = single->to_plain(p, single->weights());
    const std::vector<float> two = parallel->to_plain(parallel->parameters()[i], parallel->weights());
    EXPECT_LE(relative_error(two, one), 1e-5) << p.name;
  }
}

}  // namespace
}  // namespace paceline::train

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  MPI_Finalize();
  return result;
}
