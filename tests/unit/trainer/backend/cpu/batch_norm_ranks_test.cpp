// SPDX-License-Identifier: Apache-2.0
// Synchronised and frozen batch norm over 1, 2, 3 and 4 ranks: N ranks with a batch of b each take the step of one rank
// with a batch of N b, with any communicator. mpirun starts four ranks, of which a test uses the first N; the first of
// them compares.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "tests/unit/trainer/backend/reference/reference_model.h"
#include "tests/unit/trainer/some_ranks.h"
#include "trainer/backend/cpu/cpu_model.h"
#include "trainer/comm/communicator.h"
#include "trainer/data/image_source.h"
#include "trainer/nn/models.h"
#include "trainer/optim/sgd.h"
#include "trainer/run/evaluation.h"

namespace paceline::train {
namespace {

using reference::ReferenceModel;
using reference::relative_error;
using reference::Tensor;

constexpr std::int64_t b = 16,
                       size = 8;  // the last batch norms have one value for each image; few values amplify rounding
constexpr std::size_t image = 3 * size * size;
constexpr std::int64_t size_of_images = size;
constexpr double kink_margin = 2e-6;
constexpr double bound = 1e-5;     // ‖ours − expected‖₂ ÷ ‖expected‖₂
constexpr double by_winograd = 2;  // times the rounding error, and so the bounds

ModelOptions narrow_resnet(std::int64_t batch, bool winograd = false) {
  ModelOptions options;
  options.name = "resnet18";
  options.image_size = size;
  options.batch_size = batch;
  options.width = 0.25;
  options.winograd = winograd;  // its second stage has 32 channels of 4×4 pixels, which Winograd's algorithm takes
  return options;
}

struct Images {
  std::vector<float> images;
  std::vector<std::int32_t> labels;

  Images(int ranks, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    images.resize(static_cast<std::size_t>(ranks * b) * image);
    for (float& value : images) value = normal(random);
    for (std::int64_t i = 0; i < ranks * b; ++i) labels.push_back(static_cast<std::int32_t>(i * 7 % 10));
  }
};

Communicator communicator_of(MPI_Comm part) {
  return make_host_communicator("mpi", "f32", std::make_unique<Ranks>(part));
}

// The gradient of this rank's part of the samples.
void parallel_pass(Model& model, int rank, const Images& samples) {
  const auto first = static_cast<std::size_t>(rank * b);
  model.forward(std::span(samples.images).subspan(first * image, b * image),
                std::span(samples.labels).subspan(first, b), Mode::train);
  model.backward(1.0f / b);
}

// The step with its mean over the ranks.
void parallel_step(Model& model, const Communicator& communicator) {
  communicator.reduction->allreduce_mean(model.gradients());
  Sgd(model.weights().size(), {0.9f, 5e-4f}).step(model.weights(), model.gradients(), 0.05f);
}

class RanksOf : public testing::TestWithParam<std::tuple<int, bool, bool>> {};

TEST_P(RanksOf, WithSynchronisedOrFrozenBatchNormTakeTheStepOfOneLargeBatch) {
  const auto [ranks, frozen, winograd] = GetParam();
  const double times = winograd ? by_winograd : 1;
  const SomeRanks some(ranks);
  if (!some) return;  // a rank beyond N
  const auto communicator = communicator_of(some.comm());
  const bool compares = communicator.collectives->rank() == 0;
  const Network network = build_network(narrow_resnet(b));
  // A ReLU whose input changes its sign by fp32's rounding would cause a difference that has nothing to do with batch
  // norm. With frozen batch norms each image's activations are equal on both sides.
  ReferenceModel exact(network, 1, frozen);
  std::uint64_t seed = 0;
  for (; compares && !frozen && seed < 60; ++seed) {
    const Images samples(ranks, seed);
    Tensor images(ranks * b, network.layers()[0].out);
    images.values.assign(samples.images.begin(), samples.images.end());
    exact.forward(images, samples.labels, Mode::train);
    if (exact.distance_to_kink() >= times * kink_margin) break;
  }
  communicator.collectives->broadcast(std::span(&seed, 1), 0);
  ASSERT_LT(seed, 60u);
  const Images samples(ranks, seed);

  ModelOptions options = narrow_resnet(b, winograd);
  options.freeze_batch_norm = frozen;
  if (!frozen)
    options.batch_norm.sum_over_ranks = [&](std::span<double> sums) { communicator.collectives->allreduce_sum(sums); };
  const auto parallel = make_cpu_model(options);
  parallel_pass(*parallel, communicator.collectives->rank(), samples);
  const std::vector<float> weights(parallel->weights().begin(), parallel->weights().end());
  const std::vector<float> gradient(parallel->gradients().begin(), parallel->gradients().end());

  std::vector<std::vector<float>> expected;  // by parameter
  if (compares) {
    options = narrow_resnet(ranks * b, winograd);  // oneDNN's own batch norm
    options.freeze_batch_norm = frozen;
    const auto single = make_cpu_model(options);
    single->forward(samples.images, samples.labels, Mode::train);
    single->backward(1.0f / static_cast<float>(ranks * b));
    Sgd(single->weights().size(), {0.9f, 5e-4f}).step(single->weights(), single->gradients(), 0.05f);
    EXPECT_LE(relative_error(parallel->statistics(), single->statistics()), times * bound);
    for (const Parameter& p : single->parameters()) expected.push_back(single->to_plain(p, single->weights()));
  }
  if (compares && !frozen) {
    exact.backward(1.0 / static_cast<double>(ranks * b));
    exact.step(0.05, 0.9, 5e-4);
  }
  for (const SomeRanks::Way& way : some.ways()) {
    SCOPED_TRACE(way.name);
    std::ranges::copy(weights, parallel->weights().begin());
    std::ranges::copy(gradient, parallel->gradients().begin());
    parallel_step(*parallel, make_host_communicator(way.name, "f32", way.ranks(some.comm())));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Parameter& p = parallel->parameters()[i];
      const std::vector<float> many = parallel->to_plain(p, parallel->weights());
      EXPECT_LE(relative_error(many, expected[i]), times * bound) << p.name;
      if (frozen || way.name != "mpi") continue;
      EXPECT_LE(relative_error(many, exact.weights.at(p.name)), times * bound) << p.name << ", against float64";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(One, RanksOf,
                         testing::Combine(testing::Values(1, 2, 3, 4), testing::Bool(), testing::Values(false)));
// With few ranks only, because the search for images that keep all ReLUs away from zero takes longer with more images.
INSTANTIATE_TEST_SUITE_P(OneByWinograd, RanksOf,
                         testing::Combine(testing::Values(1, 2), testing::Bool(), testing::Values(true)));

// The reason for synchronisation: with its own statistics each rank takes a different step.
TEST(LocalBatchNorm, OnTwoRanksDiffersFromOneLargeBatch) {
  const SomeRanks some(2);
  if (!some) return;
  const auto communicator = communicator_of(some.comm());
  const Images samples(2, 1);
  const auto parallel = make_cpu_model(narrow_resnet(b));
  parallel_pass(*parallel, communicator.collectives->rank(), samples);
  parallel_step(*parallel, communicator);
  if (communicator.collectives->rank() > 0) return;
  ReferenceModel exact(build_network(narrow_resnet(b)), 1, false);
  Tensor images(2 * b, exact.network().layers()[0].out);
  images.values.assign(samples.images.begin(), samples.images.end());
  exact.forward(images, samples.labels, Mode::train);
  exact.backward(1.0 / (2 * b));
  exact.step(0.05, 0.9, 5e-4);
  double largest = 0;
  for (const Parameter& p : parallel->parameters()) {
    largest = std::max(largest, relative_error(parallel->to_plain(p, parallel->weights()), exact.weights.at(p.name)));
  }
  EXPECT_GT(largest, 1e-3);
}

// Images in memory in the form of the network's input.
class Prepared final : public ImageSource {
 public:
  explicit Prepared(Images images) : images_(std::move(images)) {}
  std::size_t size() const override { return images_.labels.size(); }
  std::int64_t image_size() const override { return size_of_images; }
  std::int64_t classes() const override { return 10; }
  std::int32_t label(std::size_t sample) const override { return images_.labels[sample]; }
  void prepare(std::size_t sample, const std::optional<Draw>&, std::span<float> out) const override {
    std::ranges::copy(std::span(images_.images).subspan(sample * image, image), out.begin());
  }

 private:
  Images images_;
};

// The ranks have seen different images, so their running statistics differ. Evaluation scores one model with the mean
// of the statistics.
TEST(Evaluation, ScoresWithTheMeanOfTheRanksStatistics) {
  for (const int ranks : {2, 3}) {
    const SomeRanks some(ranks);
    if (!some) continue;
    const auto communicator = communicator_of(some.comm());
    const int rank = communicator.collectives->rank();
    ModelOptions options = narrow_resnet(b, true);
    options.batch_norm.momentum = 1;
    const auto model = make_cpu_model(options);
    // With a different mean and deviation on each rank.
    Images seen(1, 7);
    for (float& value : seen.images) value = value * static_cast<float>(1 + rank) + static_cast<float>(rank);
    model->forward(seen.images, seen.labels, Mode::train);
    const std::vector<float> own(model->statistics().begin(), model->statistics().end());

    Images test(
        ranks,
        11);  // the number differs from a multiple of the batch, so that the ranks' parts and last batches differ
    for (int more = 0; more < 5; ++more) {
      test.images.insert(test.images.end(), test.images.begin() + more * static_cast<int>(image),
                         test.images.begin() + (more + 1) * static_cast<int>(image));
      test.labels.push_back(test.labels[static_cast<std::size_t>(more)]);
    }
    const Score score = evaluate(*model, *communicator.collectives, Prepared(test), b);
    EXPECT_TRUE(std::ranges::equal(model->statistics(), own)) << "training goes on with its own";

    std::vector<double> sum(own.begin(), own.end());
    communicator.collectives->allreduce_sum(sum);
    const auto score_with = [&](const std::vector<double>& statistics, double divisor) {
      for (std::size_t i = 0; i < statistics.size(); ++i) {
        model->statistics()[i] = static_cast<float>(statistics[i] / divisor);
      }
      Score all;
      for (std::size_t first = 0; first < test.labels.size(); first += b) {
        const std::size_t count = std::min<std::size_t>(b, test.labels.size() - first);
        const Score part = model->forward(std::span(test.images).subspan(first * image, count * image),
                                          std::span(test.labels).subspan(first, count), Mode::evaluate);
        all.loss_sum += part.loss_sum;
        all.correct += part.correct;
        all.samples += part.samples;
      }
      return all;
    };
    const Score mean = score_with(sum, ranks), alone = score_with({own.begin(), own.end()}, 1);
    EXPECT_EQ(score.samples, static_cast<std::int64_t>(test.labels.size()));
    EXPECT_EQ(score.correct, mean.correct);
    EXPECT_NEAR(score.loss_sum, mean.loss_sum, 1e-6 * mean.loss_sum);
    EXPECT_GT(std::abs(alone.loss_sum - mean.loss_sum), 1e-4 * mean.loss_sum) << "these statistics make no difference";
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
