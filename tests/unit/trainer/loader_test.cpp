#include "trainer/data/loader.h"

#include <gtest/gtest.h>

#include "trainer/data/augment.h"
#include "trainer/data/synthetic.h"

namespace paceline::train {
namespace {

Dataset small_data() { return synthetic_data({16, 10, 50, 10, 1}).train; }

Loader::Options options(std::uint64_t first, std::uint64_t last, std::size_t batch, int rank = 0, int ranks = 1) {
  return {EpochPlan{50, batch, rank, ranks}, 1, first, last, 2};
}

TEST(Loader, GivesTheBatchesOfThePlanInOrderThroughSeveralEpochs) {
  const Dataset data = small_data();
  const Normalization normalization = normalization_of(data);
  Loader loader(data, normalization, options(0, 15, 8));  // 6 iterations an epoch, 2 samples dropped
  std::vector<float> image(data.image_bytes());
  for (std::uint64_t iteration = 0; iteration < 15; ++iteration) {
    const std::uint64_t epoch = iteration / 6;
    const auto order = epoch_order(1, epoch, 50);
    const Batch& batch = loader.next();
    ASSERT_EQ(batch.labels.size(), 8u);
    ASSERT_EQ(batch.images.size(), 8 * data.image_bytes());
    for (std::size_t i = 0; i < 8; ++i) {
      const std::uint32_t sample = order[(iteration % 6) * 8 + i];
      prepare_image(data, sample, normalization, augmentation_of(1, epoch, sample, 16), image);
      EXPECT_EQ(batch.labels[i], data.labels[sample]);
      EXPECT_TRUE(std::equal(image.begin(), image.end(),
                             batch.images.begin() + static_cast<std::ptrdiff_t>(i * data.image_bytes())));
    }
  }
}

TEST(Loader, StartsInMidRunWithTheSameBatches) {
  const Dataset data = small_data();
  Loader whole(data, {}, options(0, 12, 8)), rest(data, {}, options(7, 12, 8));
  for (int skipped = 0; skipped < 7; ++skipped) whole.next();
  for (int iteration = 7; iteration < 12; ++iteration) {
    const Batch& expected = whole.next();
    const Batch& batch = rest.next();
    EXPECT_EQ(batch.labels, expected.labels);
    EXPECT_EQ(batch.images, expected.images);
  }
}

TEST(Loader, RanksShareTheBatchThatOneRankWouldHave) {
  const Dataset data = small_data();
  Loader whole(data, {}, options(0, 6, 8)), first(data, {}, options(0, 6, 4, 0, 2)),
      second(data, {}, options(0, 6, 4, 1, 2));
  for (int iteration = 0; iteration < 6; ++iteration) {
    const Batch& expected = whole.next();
    std::vector<float> images = first.next().images;
    const Batch& other = second.next();
    images.insert(images.end(), other.images.begin(), other.images.end());
    EXPECT_EQ(images, expected.images);
  }
}

TEST(Loader, StopsWithBatchesUnread) {
  const Dataset data = small_data();
  Loader untouched(data, {}, options(0, 1'000'000'000, 8));
  Loader begun(data, {}, options(0, 1'000'000'000, 8));
  EXPECT_EQ(begun.next().labels.size(), 8u);
}

TEST(SyntheticData, HasTheSizeAskedForAndStoresFewImages) {
  const TrainAndTest data = synthetic_data({24, 7, 5000, 300, 1});
  EXPECT_EQ(data.train.size(), 5000u);
  EXPECT_EQ(data.test.size(), 300u);
  EXPECT_EQ(data.train.pixels.size(), 256 * 3 * 24 * 24u);
  EXPECT_EQ(data.train.image(4999).size(), 3 * 24 * 24u);
  for (std::size_t sample = 0; sample < 5000; ++sample) {
    ASSERT_LT(data.train.labels[sample], 7);
    ASSERT_EQ(data.train.labels[sample], data.train.labels[sample % 256]);  // an image keeps its label
  }
}

}  // namespace
}  // namespace paceline::train
