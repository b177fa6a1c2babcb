// SPDX-License-Identifier: Apache-2.0
// Local SGD, top-k and PowerSGD against the allreduce and against their definitions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/unit/trainer/updaters/small_job.h"
#include "trainer/core/error.h"
#include "trainer/updaters/low_rank.h"

namespace paceline::train {
namespace compression_test {
namespace {

using namespace small_job;

struct Settings {
  UpdaterValues values{{"local-steps", 1}, {"top-k-share", 1}, {"power-sgd-rank", 1}};
  SgdOptions optimizer = sgd;
};

// One rank's part of a job.
struct CompressedJob {
  CompressedJob(FirstRanks& ranks, const std::string& updater_name, const Settings& settings = {})
      : communicator(ranks.communicator()),
        model(small_model()),
        optimizer(model->weights().size(), settings.optimizer) {
    UpdaterParts parts{*model, communicator, optimizer};
    parts.pass.batch = b;
    parts.pass.rank = communicator.collectives->rank();
    parts.values = settings.values;
    updater = make_updater(updater_name, parts);
  }

  StepResult step(std::uint64_t t, bool stop = false) {
    return updater->step(batch_of(t, communicator.collectives->rank()), t, rate, stop);
  }
  std::vector<float> weights() const { return {model->weights().begin(), model->weights().end()}; }

  // Whether all ranks have these bits.
  bool equal_on_all_ranks(const std::vector<float>& values) {
    std::vector<float> first = values;
    communicator.collectives->broadcast(std::span<float>(first), 0);
    std::vector<double> differences{first == values ? 0.0 : 1.0};
    communicator.collectives->allreduce_sum(differences);
    return differences[0] == 0;
  }

  Communicator communicator;
  std::unique_ptr<Model> model;
  Sgd optimizer;
  std::unique_ptr<Updater> updater;
};

std::vector<float> after(FirstRanks& ranks, std::uint64_t steps, const std::string& updater,
                         const Settings& settings = {}) {
  CompressedJob job(ranks, updater, settings);
  for (std::uint64_t t = 0; t < steps; ++t) job.step(t);
  EXPECT_TRUE(job.equal_on_all_ranks(job.weights())) << updater;
  return job.weights();
}

TEST(LocalSgd, WithOneLocalStepTakesTheStepsOfTheAllreduce) {
  for (const int p : {1, 2, 3, 4}) {
    FirstRanks ranks(p);
    if (!ranks.in) continue;
    for (const bool nesterov : {false, true}) {
      Settings settings;
      settings.optimizer.nesterov = nesterov;
      const std::vector<float> expected = after(ranks, 6, "allreduce", settings);
      EXPECT_LE(relative_difference(after(ranks, 6, "local_sgd", settings), expected), 1e-6) << p << " ranks";
      EXPECT_GT(relative_difference(small_model()->weights(), expected), 1e-3) << "nothing was trained";
    }
  }
}

TEST(LocalSgd, AveragesWhatEachRankHasLearnedAlone) {
  FirstRanks ranks(3);
  if (!ranks.in) return;
  Settings settings;
  settings.values["local-steps"] = 3;
  CompressedJob job(ranks, "local_sgd", settings);
  // Alone: the same images on a communicator of one rank.
  const auto alone = small_model();
  Sgd optimizer(alone->weights().size(), sgd);
  const Communicator self = make_host_communicator("mpi", "f32", std::make_unique<Ranks>(MPI_COMM_SELF));
  UpdaterParts parts{*alone, self, optimizer};
  parts.pass.batch = b;
  parts.pass.rank = job.communicator.collectives->rank();
  const auto single = make_updater("single", parts);
  for (std::uint64_t t = 0; t < 3; ++t) {
    job.step(t);
    single->step(batch_of(t, parts.pass.rank), t, rate, false);
    if (t == 0) {
      EXPECT_FALSE(job.equal_on_all_ranks(job.weights())) << "averaged too early";
    }
  }
  std::vector<float> expected(alone->weights().begin(), alone->weights().end());
  job.communicator.reduction->allreduce_mean(expected);
  EXPECT_LE(relative_difference(job.weights(), expected), 1e-6);
  EXPECT_TRUE(job.equal_on_all_ranks(job.weights()));
  const std::span<const float> momentum = job.optimizer.velocity();
  EXPECT_TRUE(job.equal_on_all_ranks({momentum.begin(), momentum.end()}));
}

TEST(LocalSgd, MeetsBeforeCheckpointsAndStopsForAnyRank) {
  FirstRanks ranks(3);
  if (!ranks.in) return;
  Settings settings;
  settings.values["local-steps"] = 4;
  CompressedJob job(ranks, "local_sgd", settings);
  EXPECT_TRUE(job.updater->asynchronous());
  job.step(0);
  EXPECT_FALSE(job.updater->settle(false));
  EXPECT_TRUE(job.equal_on_all_ranks(job.weights()));
  const int rank = job.communicator.collectives->rank();
  EXPECT_FALSE(job.step(1, rank == 1).stop) << "only rank 1 knows";
  EXPECT_FALSE(job.step(2).stop);
  EXPECT_TRUE(job.step(3).stop) << "all ranks know where they average";
}

// An updater that compresses, and its settings.
struct Compression {
  const char* updater;
  Settings everything, little;  // that lose nothing, and much
};

std::vector<Compression> compressions() {
  return {{"top_k", {.values = {{"top-k-share", 1}}}, {.values = {{"top-k-share", 0.02}}}},
          {"power_sgd", {.values = {{"power-sgd-rank", 10000}}}, {.values = {{"power-sgd-rank", 1}}}}};
}

TEST(Compression, ThatLosesNothingTakesTheStepsOfTheAllreduce) {
  for (const int p : {1, 2, 3, 4}) {
    FirstRanks ranks(p);
    if (!ranks.in) continue;
    const std::vector<float> expected = after(ranks, 6, "allreduce");
    for (const Compression& c : compressions()) {
      EXPECT_LE(relative_difference(after(ranks, 6, c.updater, c.everything), expected), 1e-5) << c.updater << ' ' << p;
      EXPECT_GT(relative_difference(after(ranks, 6, c.updater, c.little), expected), 1e-3) << c.updater << ' ' << p;
    }
  }
}

// What a step applies and what the ranks keep add up to the mean gradient and what they kept before.
TEST(Compression, KeepsWhatItLeavesOut) {
  FirstRanks ranks(3);
  if (!ranks.in) return;
  for (Compression c : compressions()) {
    c.little.optimizer = {0, 0, false};  // a step is rate × gradient
    CompressedJob job(ranks, c.updater, c.little);
    std::vector<float> kept(job.model->weights().size(), 0.0f);
    for (std::uint64_t t = 0; t < 3; ++t) {
      const std::vector<float> before = job.weights();
      const auto model = small_model();
      std::ranges::copy(before, model->weights().begin());
      const Batch batch = batch_of(t, job.communicator.collectives->rank());
      model->forward(batch.images, batch.labels, Mode::train);
      model->backward(1.0f / b);
      job.communicator.reduction->allreduce_mean(model->gradients());
      std::vector<float> expected(model->gradients().begin(), model->gradients().end());
      std::ranges::transform(expected, kept, expected.begin(), std::plus<>());

      job.step(t);
      job.updater->settle(false);
      const std::span<const float> pending = job.updater->pending();
      kept.assign(pending.begin(), pending.end());
      std::vector<float> sum(kept);
      const std::vector<float> weights = job.weights();
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += (before[i] - weights[i]) / static_cast<float>(rate);
      EXPECT_LE(relative_difference(sum, expected), 1e-4) << c.updater << ", step " << t;
      EXPECT_GT(relative_difference(kept, expected), 0.1) << c.updater << ": nothing was left out";
      EXPECT_TRUE(job.equal_on_all_ranks(weights)) << c.updater;
      EXPECT_TRUE(job.equal_on_all_ranks(kept)) << c.updater;
    }
  }
}

TEST(Compression, ContinuesFromItsResidualToTheBit) {
  FirstRanks ranks(2);
  if (!ranks.in) return;
  for (const Compression& c : compressions()) {
    CompressedJob whole(ranks, c.updater, c.little), resumed(ranks, c.updater, c.little);
    for (std::uint64_t t = 0; t < 3; ++t) whole.step(t);
    whole.updater->settle(false);
    std::ranges::copy(whole.model->weights(), resumed.model->weights().begin());
    std::ranges::copy(whole.optimizer.velocity(), resumed.optimizer.velocity().begin());
    resumed.updater->restore_pending(whole.updater->pending());
    std::ranges::copy(whole.updater->warm_start(), resumed.updater->warm_start().begin());
    for (std::uint64_t t = 3; t < 6; ++t) {
      whole.step(t);
      resumed.step(t);
    }
    EXPECT_EQ(resumed.weights(), whole.weights()) << c.updater;
  }
}

TEST(TopK, ChangesNoMoreWeightsThanTheRanksSent) {
  FirstRanks ranks(2);
  if (!ranks.in) return;
  CompressedJob job(ranks, "top_k", {.values = {{"top-k-share", 0.01}}, .optimizer = {0, 0, false}});
  const std::vector<float> before = job.weights();
  job.step(0);
  const std::vector<float> weights = job.weights();
  std::size_t changed = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) changed += weights[i] != before[i] ? 1 : 0;
  const auto sent = static_cast<std::size_t>(std::ceil(0.01 * static_cast<double>(weights.size())));
  EXPECT_GE(changed, sent);
  EXPECT_LE(changed, 2 * sent);
}

std::vector<float> random_matrix(std::size_t count, unsigned seed) {
  std::vector<float> values(count);
  fill_normal(values, seed);
  return values;
}

// One iteration of PowerSGD's subspace iteration on one rank; returns ‖M − P Qᵀ‖ ÷ ‖M‖.
double power_step(const MatrixShape& shape, const std::vector<float>& m, std::vector<float>& q) {
  std::vector<float> p(shape.rows * shape.rank), approximation(m.size());
  multiply(shape, m, q, p);
  orthonormalise(shape, p);
  multiply_transposed(shape, m, p, q);
  expand(shape, p, q, approximation);
  return relative_difference(approximation, m);
}

TEST(PowerSgd, ReproducesMatricesUpToItsRank) {
  for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>{20, 45}, {45, 20}, {1, 7}, {7, 1}}) {
    const std::size_t full = std::min(rows, columns);
    const MatrixShape shape{rows, columns, full};
    const std::vector<float> m = random_matrix(rows * columns, 3);
    std::vector<float> q = random_matrix(columns * full, 4);
    EXPECT_LE(power_step(shape, m, q), 2e-6) << rows << " × " << columns;
  }
  // A matrix of rank 2 with room for 5: three columns depend on the others and are dropped.
  const std::vector<float> left = random_matrix(20 * 2, 5), right = random_matrix(30 * 2, 6);
  std::vector<float> m(20 * 30), q = random_matrix(30 * 5, 7), p(20 * 5);
  expand({20, 30, 2}, left, right, m);
  const MatrixShape shape{20, 30, 5};
  multiply(shape, m, q, p);
  EXPECT_EQ(orthonormalise(shape, p), (std::vector<std::size_t>{2, 3, 4}));
  EXPECT_LE(power_step(shape, m, q), 2e-6);
}

TEST(PowerSgd, ApproachesTheBestApproximationByWarmStarts) {
  // Singular values 4, 2 and 1 along unit vectors: the best matrix of rank 1 leaves √(4 + 1) of √(16 + 4 + 1).
  std::vector<float> m(6 * 5, 0.0f);
  m[0] = 4, m[1 * 5 + 1] = 2, m[2 * 5 + 2] = 1;
  std::vector<float> q = random_matrix(5, 8);
  const MatrixShape shape{6, 5, 1};
  double left = power_step(shape, m, q);
  for (int i = 0; i < 20; ++i) {
    const double next = power_step(shape, m, q);
    EXPECT_LE(next, left + 1e-6);
    left = next;
  }
  EXPECT_NEAR(left, std::sqrt(5.0 / 21), 1e-5);
}

TEST(PowerSgd, KeepsItsWarmStartWhereTheRanksMeet) {
  FirstRanks ranks(2);
  if (!ranks.in) return;
  CompressedJob job(ranks, "power_sgd", {.values = {{"power-sgd-rank", 2}}});
  const auto state = [&] {
    const std::span<float> q = job.updater->warm_start();
    return std::vector<float>(q.begin(), q.end());
  };
  const std::vector<float> drawn = state();
  for (std::uint64_t t = 0; t < 3; ++t) job.step(t);
  const std::vector<float> warm = state();
  EXPECT_NE(warm, drawn);
  EXPECT_TRUE(job.equal_on_all_ranks(warm));
  job.updater->settle(false);
  EXPECT_EQ(state(), warm);
}

TEST(Compression, RefusesTypesOfTheWire) {
  const auto refusal = [](const char* name, const char* communicator, const char* type) -> std::string {
    try {
      check_updater(name, 2, communicator, type);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (const char* updater : {"local_sgd", "top_k", "power_sgd"}) {
    EXPECT_THAT(refusal(updater, "mpi", "f16"), testing::HasSubstr("‹allreduce-dtype› f16")) << updater;
    EXPECT_EQ(refusal(updater, "mpi", "f32"), "") << updater;
  }
  EXPECT_THAT(refusal("top_k", "ring", "f32"), testing::HasSubstr("‹communicator› ring"));
  EXPECT_EQ(refusal("power_sgd", "ring", "f32"), "");
}

}  // namespace
}  // namespace compression_test
}  // namespace paceline::train
