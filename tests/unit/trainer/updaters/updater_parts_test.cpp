// SPDX-License-Identifier: Apache-2.0
// The parts of updaters, without other ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/unit/trainer/temporary_directory.h"
#include "trainer/backend/cpu/cpu_model.h"
#include "trainer/core/error.h"
#include "trainer/updaters/background.h"
#include "trainer/updaters/buckets.h"
#include "trainer/updaters/gradient_pass.h"

namespace paceline::train {
namespace {

using testing::ElementsAre;

std::unique_ptr<Model> model_with_dropout(std::int64_t batch) {
  Network net({3, 8, 8});
  int x = net.batch_norm("bn1", net.convolution("conv1", 0, 8, 3, 1, false), true);
  x = net.dropout("drop", net.average_pool("pool", x, 8), 0.5f);
  net.linear("fc", x, 10);
  ModelOptions options;
  options.batch_size = batch;
  return make_cpu_model(net, options);
}

Batch some_batch(std::size_t samples) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  Batch batch;
  batch.images.resize(samples * 3 * 8 * 8);
  for (float& value : batch.images) value = normal(random);
  for (std::size_t i = 0; i < samples; ++i) batch.labels.push_back(static_cast<std::int32_t>(i % 10));
  return batch;
}

TEST(GradientsReady, ReportsEveryParameterOnceItsGradientIsFinal) {
  const auto model = model_with_dropout(4);
  const Batch batch = some_batch(4);
  model->forward(batch.images, batch.labels, Mode::train);
  std::vector<std::size_t> order;
  std::vector<std::vector<float>> seen(model->parameters().size());
  model->gradients_ready = [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      order.push_back(i);
      const auto span = model->gradients().subspan(model->parameters()[i].offset, model->parameters()[i].size);
      seen[i].assign(span.begin(), span.end());
    }
  };
  std::ranges::fill(model->gradients(), 77.0f);
  model->backward(0.25f);
  EXPECT_THAT(order, ElementsAre(3, 4, 1, 2, 0));  // fc, then bn1, then conv1
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto span = model->gradients().subspan(model->parameters()[i].offset, model->parameters()[i].size);
    EXPECT_TRUE(std::equal(span.begin(), span.end(), seen[i].begin())) << model->parameters()[i].name;
  }
}

TEST(GradientPass, SeedsTheMasksWithSeedRankAndIteration) {
  const Batch batch = some_batch(4);
  const auto loss = [&](std::uint64_t seed, int rank, std::uint64_t iteration, int passes_before) {
    const auto model = model_with_dropout(4);
    GradientPass pass(*model, {seed, rank, 4});
    for (int i = 0; i < passes_before; ++i) pass.run(batch, 1000);
    return pass.run(batch, iteration).loss_sum;
  };
  const double one = loss(1, 0, 5, 0);
  EXPECT_EQ(loss(1, 0, 5, 0), one);
  EXPECT_EQ(loss(1, 0, 5, 3), one) << "the masks depend on what was before";
  EXPECT_NE(loss(2, 0, 5, 0), one);
  EXPECT_NE(loss(1, 1, 5, 0), one);
  EXPECT_NE(loss(1, 0, 6, 0), one);
}

TEST(Buckets, FillUpToTheirLimitsInTheOrderOfArrival) {
  const auto model = model_with_dropout(4);
  std::vector<std::size_t> extents;
  for (std::size_t i = 0; i < model->parameters().size(); ++i) {
    extents.push_back(slice_of_parameter(*model, i).count);
  }
  const std::vector<std::uint64_t> order = {4, 3, 2, 1, 0};
  const BucketPlan whole = plan_buckets(*model, order, 1 << 20, 1 << 20, 4);
  ASSERT_EQ(whole.buckets.size(), 1u);
  ASSERT_EQ(whole.buckets[0].slices.size(), 1u) << "neighbours are one slice";
  EXPECT_EQ(whole.buckets[0].slices[0].first, 0u);
  EXPECT_EQ(whole.buckets[0].values, model->gradients().size());

  const BucketPlan tiny = plan_buckets(*model, order, 1, 1, 4);
  ASSERT_EQ(tiny.buckets.size(), 5u);
  EXPECT_THAT(tiny.of, ElementsAre(4, 3, 2, 1, 0));
  EXPECT_EQ(tiny.buckets[0].slices[0].first, model->parameters()[4].offset);

  // The first bucket takes the bias and weight of fc, the second all other parameters.
  const BucketPlan two = plan_buckets(*model, order, (extents[4] + extents[3]) * 4, 1 << 20, 4);
  ASSERT_EQ(two.buckets.size(), 2u);
  EXPECT_EQ(two.buckets[0].parameters, 2u);
  EXPECT_EQ(two.buckets[1].parameters, 3u);
  EXPECT_EQ(two.buckets[0].values + two.buckets[1].values, model->gradients().size());
  // In 16 bits twice as many values fit.
  EXPECT_EQ(plan_buckets(*model, order, (extents[4] + extents[3]) * 2, 1 << 20, 2).buckets[0].parameters, 2u);

  const BucketPlan apart = plan_buckets(*model, {0, 4, 1, 2, 3}, 1 << 20, 1 << 20, 4);
  EXPECT_EQ(apart.buckets[0].slices.size(), 1u);
  const BucketPlan gap = plan_buckets(*model, {0, 4, 1, 2, 3}, (extents[0] + extents[4]) * 4, 1 << 20, 4);
  EXPECT_EQ(gap.buckets[0].slices.size(), 2u) << "no neighbours";
}

TEST(Background, WorksInOrderAndPassesExceptionsOn) {
  std::vector<int> done;
  Background background("test");
  for (int i = 0; i < 5; ++i) background.submit([&done, i] { done.push_back(i); });
  background.wait();
  EXPECT_THAT(done, ElementsAre(0, 1, 2, 3, 4));
  background.submit([] { throw Error("broken"); });
  EXPECT_EQ(message_of<Error>([&] { background.wait(); }), "broken");
  background.submit([&done] { done.push_back(5); });
  background.wait();
  EXPECT_EQ(done.back(), 5);
}

}  // namespace
}  // namespace paceline::train
