// SPDX-License-Identifier: Apache-2.0
// The sharded optimizer against the allreduce, and its state as it moves between numbers of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/unit/trainer/updaters/small_job.h"
#include "trainer/checkpoint/sharded_state.h"
#include "trainer/core/error.h"
#include "trainer/optim/make_optimizer.h"

namespace paceline::train {
namespace {

using namespace small_job;

// One rank's part of a job with any updater and optimizer.
struct ShardedJob {
  ShardedJob(FirstRanks& ranks, const std::string& updater_name, const std::string& communicator_name = "ring",
             const std::string& type = "f32", OptimizerOptions options = {}, std::optional<double> clip = std::nullopt)
      : communicator(ranks.communicator(communicator_name, type)), model(small_model()) {
    options.weight_decay.rate = 5e-4f;
    const std::size_t elements = model->weights().size();
    const bool shards = updater_name == "sharded" && communicator.collectives->size() > 1;
    optimizer = shards ? make_shard_optimizer(options, model->parameters(), elements,
                                              communicator.reduction->sharded()->own_shard(elements))
                       : make_optimizer(options, model->parameters(), elements);
    UpdaterParts parts{*model, communicator, *optimizer};
    parts.pass.batch = b;
    parts.pass.rank = communicator.collectives->rank();
    parts.clip_norm = clip;
    updater = make_updater(updater_name, parts);
  }

  void steps(std::uint64_t first, std::uint64_t end) {
    for (std::uint64_t t = first; t < end; ++t) {
      updater->step(batch_of(t, communicator.collectives->rank()), t, rate, false);
    }
  }
  std::vector<float> weights() const { return {model->weights().begin(), model->weights().end()}; }

  Communicator communicator;
  std::unique_ptr<Model> model;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Updater> updater;
};

// A ring's allreduce is its reduce-scatter and its all-gather, so the order of the sums is the same.
TEST(Sharded, EqualsTheAllreduceOfARingToTheBit) {
  for (const int p : {1, 2, 3, 4}) {
    FirstRanks ranks(p);
    if (!ranks.in) continue;
    for (const std::string& type : allreduce_dtypes()) {
      ShardedJob whole(ranks, "allreduce", "ring", type), sharded(ranks, "sharded", "ring", type);
      whole.steps(0, 4);
      sharded.steps(0, 4);
      EXPECT_EQ(sharded.weights(), whole.weights()) << p << " ranks, " << type;
      EXPECT_GT(relative_difference(small_model()->weights(), whole.weights()), 1e-3) << "nothing was trained";
    }
  }
}

TEST(Sharded, EqualsTheAllreduceOfTheMpiLibrary) {
  for (const int p : {1, 2, 3, 4}) {
    FirstRanks ranks(p);
    if (!ranks.in) continue;
    ShardedJob whole(ranks, "allreduce", "mpi"), sharded(ranks, "sharded", "mpi");
    whole.steps(0, 4);
    sharded.steps(0, 4);
    if (p <= 2) {  // a sum of two numbers has one order
      EXPECT_EQ(sharded.weights(), whole.weights()) << p << " ranks";
    } else {
      EXPECT_LE(relative_difference(sharded.weights(), whole.weights()), 1e-6) << p << " ranks";
    }
  }
}

TEST(Sharded, WorksWithEveryOptimizerThatNeedsNoWholeLayers) {
  FirstRanks ranks(3);
  if (!ranks.in) return;
  for (const std::string& name : optimizer_names()) {
    if (name == "lars") continue;
    OptimizerOptions options;
    options.name = name;
    ShardedJob whole(ranks, "allreduce", "ring", "f32", options), sharded(ranks, "sharded", "ring", "f32", options);
    whole.steps(0, 3);
    sharded.steps(0, 3);
    EXPECT_EQ(sharded.weights(), whole.weights()) << name;
  }
  OptimizerOptions lars;
  lars.name = "lars";
  EXPECT_THROW(ShardedJob(ranks, "sharded", "ring", "f32", lars), std::invalid_argument);
}

// The norm needs one more sum over the ranks, whose rounding differs.
TEST(Sharded, ClipsByTheNormOfAllShards) {
  FirstRanks ranks(3);
  if (!ranks.in) return;
  constexpr double norm = 0.05;
  ShardedJob whole(ranks, "allreduce", "ring", "f32", {}, norm), sharded(ranks, "sharded", "ring", "f32", {}, norm),
      unclipped(ranks, "sharded");
  for (ShardedJob* job : {&whole, &sharded, &unclipped}) job->steps(0, 4);
  EXPECT_LE(relative_difference(sharded.weights(), whole.weights()), 1e-6);
  EXPECT_GT(relative_difference(sharded.weights(), unclipped.weights()), 1e-3) << "nothing was clipped";
}

TEST(Sharded, EveryRankKeepsItsPartOfTheMomentum) {
  FirstRanks ranks(3);
  if (!ranks.in) return;
  for (const char* communicator : {"mpi", "ring"}) {
    ShardedJob job(ranks, "sharded", communicator);
    const std::size_t elements = job.model->weights().size(), own = job.optimizer->arrays()[0].size();
    EXPECT_LE(own, elements / 3 + 1);
    std::vector<double> sum{static_cast<double>(own)};
    job.communicator.collectives->allreduce_sum(sum);
    EXPECT_EQ(sum[0], static_cast<double>(elements)) << communicator;
  }
}

// The halves alone, also with fewer values than ranks.
TEST(Halves, GiveTheMeansToTheirOwnersAndThenToAll) {
  for (const int p : {1, 2, 3, 4}) {
    FirstRanks ranks(p);
    if (!ranks.in) continue;
    for (const char* name : {"mpi", "ring"}) {
      const Communicator communicator = ranks.communicator(name);
      ShardedReduction* const halves = communicator.reduction->sharded();
      ASSERT_NE(halves, nullptr);
      for (const std::size_t count :
           {std::size_t{1}, std::size_t{3}, std::size_t{17}, std::size_t{300'001}, std::size_t{1'200'003}}) {
        std::vector<float> values(count);
        for (std::size_t i = 0; i < count; ++i)
          values[i] = static_cast<float>(i % 1000 + 2 * static_cast<std::size_t>(communicator.collectives->rank()));
        halves->reduce_scatter_mean(values);
        const Slice own = halves->own_shard(count);
        for (std::size_t i = 0; i < count; ++i) {
          const bool mine = i >= own.first && i < own.first + own.count;
          if (mine) {
            ASSERT_EQ(values[i], static_cast<float>(i % 1000) + static_cast<float>(p - 1)) << name << ' ' << i;
          } else {
            values[i] = -1;
          }
        }
        halves->all_gather(values);
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(values[i], static_cast<float>(i % 1000) + static_cast<float>(p - 1))
              << name << ' ' << p << ' ' << i;
        }
      }
    }
  }
}

// As a checkpoint does it: the whole state of 3 ranks goes to 2 ranks, whose next step is that of an unsharded
// optimizer.
TEST(ShardedState, MovesToAnotherNumberOfRanks) {
  std::vector<float> weights, momentum;
  {
    FirstRanks ranks(3);
    if (ranks.in) {
      ShardedJob job(ranks, "sharded");
      job.steps(0, 2);
      weights = job.weights();
      const std::size_t elements = weights.size();
      EXPECT_TRUE(is_shard(*job.optimizer, elements));
      const auto whole = whole_state_of(*job.optimizer, elements);
      gather_state(*job.communicator.collectives, *job.optimizer, whole.get());
      if (job.communicator.collectives->rank() == 0) momentum = whole->arrays()[0];
      EXPECT_EQ(whole->name(), "sgd");
    }
  }
  FirstRanks ranks(2);
  if (!ranks.in) return;
  ShardedJob sharded(ranks, "sharded"), unsharded(ranks, "allreduce");
  momentum.resize(weights.size());
  sharded.communicator.collectives->broadcast(std::span<float>(momentum), 0);
  EXPECT_NE(std::ranges::count(momentum, 0.0f), static_cast<std::ptrdiff_t>(momentum.size()));
  for (ShardedJob* job : {&sharded, &unsharded}) std::ranges::copy(weights, job->model->weights().begin());
  unsharded.optimizer->arrays()[0] = momentum;
  const auto whole = whole_state_of(*sharded.optimizer, weights.size());
  if (sharded.communicator.collectives->rank() == 0) whole->arrays()[0] = momentum;
  scatter_state(*sharded.communicator.collectives, whole.get(), *sharded.optimizer);
  sharded.steps(2, 4);
  unsharded.steps(2, 4);
  EXPECT_EQ(sharded.weights(), unsharded.weights());
}

TEST(Sharded, RefusesCommunicatorsWithoutAReduceScatter) {
  for (const std::string& name : communicator_names()) {
    std::string message;
    try {
      check_updater("sharded", 2, name, "f32");
    } catch (const Error& error) {
      message = error.what();
    }
    const bool has_one = name == "mpi" || name == "ring" || name == "single_node";
    EXPECT_EQ(message.empty(), has_one) << name << ": " << message;
  }
}

}  // namespace
}  // namespace paceline::train
