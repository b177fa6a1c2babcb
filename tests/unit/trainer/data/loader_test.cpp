// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "trainer/data/augment.h"
#include "trainer/data/memory_source.h"
#include "trainer/data/synthetic.h"

namespace paceline::train {
namespace {

Dataset small_data() { return synthetic_data({16, 10, 50, 10, 1}).train; }

Loader::Plan batches(std::size_t batch, int rank = 0, int ranks = 1) {
  return training_batches(EpochPlan{50, batch, rank, ranks}, {1});
}

TEST(Loader, GivesTheBatchesOfThePlanInOrderThroughSeveralEpochs) {
  const Dataset data = small_data();
  const Normalization normalization = normalization_of(data);
  const MemorySource source(data, normalization);
  Loader loader(source, batches(8), {0, 15, 1, 2});  // 6 iterations an epoch, 2 samples dropped
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

TEST(Loader, GivesTheSameBatchesForAnyNumberOfWorkers) {
  const MemorySource source(small_data(), {{}, {1, 1, 1}});
  for (const std::size_t workers : {2, 3, 11}) {
    Loader one(source, batches(7), {3, 40, 1, 2}), many(source, batches(7), {3, 40, workers, 2});
    for (int iteration = 3; iteration < 40; ++iteration) {
      const Batch& expected = one.next();
      const Batch& batch = many.next();
      ASSERT_EQ(batch.labels, expected.labels);
      ASSERT_EQ(batch.images, expected.images);
    }
  }
}

// The input that a model makes from stored images and their cuts (ImageCut, StoredImages).
float stored_pixel(const Batch& batch, std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x,
                   std::int64_t size = 16) {
  const ImageCut& cut = batch.cuts[static_cast<std::size_t>(n)];
  const std::int64_t from_y = y + cut.shift_y, from_x = (cut.flip != 0 ? size - 1 - x : x) + cut.shift_x;
  if (from_y < 0 || from_y >= size || from_x < 0 || from_x >= size) return 0;
  const auto channel = static_cast<std::size_t>(c);
  const float byte = batch.planes[static_cast<std::size_t>(((n * 3 + c) * size + from_y) * size + from_x)];
  return (byte - batch.normalization->mean[channel]) * batch.normalization->scale[channel];
}

TEST(Loader, GivesStoredImagesThatTurnIntoThePreparedOnes) {
  const Dataset data = small_data();
  const MemorySource source(data, normalization_of(data)), resized(data, normalization_of(data), 24);
  Loader::Options options{0, 12, 2, 2};
  Loader prepared(source, batches(8), options);
  options.stored = true;
  Loader stored(source, batches(8), options);
  int flips = 0, shifts = 0;
  for (int iteration = 0; iteration < 12; ++iteration) {
    const Batch &expected = prepared.next(), &batch = stored.next();
    ASSERT_EQ(expected.normalization, nullptr);
    ASSERT_NE(batch.normalization, nullptr);
    EXPECT_TRUE(batch.images.empty());
    EXPECT_EQ(batch.labels, expected.labels);
    for (std::int64_t i = 0; i < 8 * 3 * 16 * 16; ++i) {
      ASSERT_EQ(stored_pixel(batch, i / 768, i / 256 % 3, i / 16 % 16, i % 16),
                expected.images[static_cast<std::size_t>(i)])
          << i;
    }
    for (const ImageCut& cut : batch.cuts) flips += cut.flip, shifts += cut.shift_x != 0 || cut.shift_y != 0;
  }
  EXPECT_GT(flips, 20);
  EXPECT_GT(shifts, 60);
}

TEST(Loader, ShiftsAndMirrorsOnlyOnRequest) {
  const Dataset data = small_data();
  const Normalization normalization = normalization_of(data);
  const MemorySource source(data, normalization);
  std::vector<float> image(data.image_bytes());
  for (const auto& [crop, mirror] : {std::pair(true, false), {false, true}, {false, false}}) {
    Loader::Options options{0, 6, 1, 2};
    Loader prepared(source, training_batches(EpochPlan{50, 8, 0, 1}, {1, 0, crop, mirror}), options);
    options.stored = true;
    Loader stored(source, training_batches(EpochPlan{50, 8, 0, 1}, {1, 0, crop, mirror}), options);
    const auto order = epoch_order(1, 0, 50);
    int changed = 0;
    for (std::size_t iteration = 0; iteration < 6; ++iteration) {
      const Batch &batch = prepared.next(), &bytes = stored.next();
      for (std::size_t i = 0; i < 8; ++i) {
        const std::uint32_t sample = order[iteration * 8 + i];
        const ImageCut drawn = augmentation_of(1, 0, sample, 16);
        const ImageCut cut{crop ? drawn.shift_x : 0, crop ? drawn.shift_y : 0, mirror && drawn.flip};
        prepare_image(data, sample, normalization, cut, image);
        ASSERT_TRUE(std::equal(image.begin(), image.end(),
                               batch.images.begin() + static_cast<std::ptrdiff_t>(i * data.image_bytes())));
        ASSERT_TRUE(bytes.cuts[i].shift_x == cut.shift_x && bytes.cuts[i].shift_y == cut.shift_y);
        ASSERT_EQ(bytes.cuts[i].flip, cut.flip);
        changed += cut.shift_x != 0 || cut.shift_y != 0 || cut.flip;
      }
    }
    EXPECT_TRUE(crop || mirror ? changed > 10 : changed == 0) << crop << mirror << ' ' << changed;
  }
}

TEST(Loader, GivesEnlargedImagesAsBytesThatDifferOnlyByRounding) {
  const Dataset data = small_data();
  const MemorySource source(data, normalization_of(data), 24);
  Loader::Options options{0, 4, 2, 2};
  Loader prepared(source, batches(8), options);
  options.stored = true;
  Loader stored(source, batches(8), options);
  int flips = 0, outside = 0, rounded = 0;
  for (int iteration = 0; iteration < 4; ++iteration) {
    const Batch &expected = prepared.next(), &batch = stored.next();
    ASSERT_EQ(expected.normalization, nullptr);
    ASSERT_NE(batch.normalization, nullptr);
    EXPECT_EQ(batch.labels, expected.labels);
    for (std::int64_t i = 0; i < 8 * 3 * 24 * 24; ++i) {
      const auto channel = static_cast<std::size_t>(i / 576 % 3);
      const float got = stored_pixel(batch, i / 1728, i / 576 % 3, i / 24 % 24, i % 24, 24);
      const float wanted = expected.images[static_cast<std::size_t>(i)];
      ASSERT_NEAR(got, wanted, 0.5001f * batch.normalization->scale[channel]) << i;
      outside += wanted == 0 && got == 0;
      rounded += got != wanted;
    }
    for (const ImageCut& cut : batch.cuts) flips += cut.flip;
  }
  EXPECT_GT(flips, 5);
  EXPECT_GT(outside, 500);  // pixels that a shift brings in are 0 in both
  EXPECT_GT(rounded, 1000);
}

TEST(Loader, ShowsTheFollowingBatchOnceItIsReady) {
  const MemorySource source(small_data(), {{}, {1, 1, 1}});
  Loader loader(source, batches(8), {0, 3, 1, 2});
  EXPECT_EQ(loader.following(), nullptr);  // no batch is in use yet
  const Batch* now = &loader.next();
  for (int iteration = 1; iteration < 3; ++iteration) {
    const Batch* following = loader.following();
    for (int wait = 0; wait < 5000 && following == nullptr; ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      following = loader.following();
    }
    ASSERT_NE(following, nullptr);
    EXPECT_NE(following, now);
    const std::vector<std::int32_t> labels = following->labels;
    now = &loader.next();
    EXPECT_EQ(now, following);
    EXPECT_EQ(now->labels, labels);
  }
  EXPECT_EQ(loader.following(), nullptr);  // after the last
}

TEST(Loader, StartsInTheMiddleOfARunWithTheSameBatches) {
  const MemorySource source(small_data(), {{}, {1, 1, 1}});
  Loader whole(source, batches(8), {0, 12, 1, 2}), rest(source, batches(8), {7, 12, 2, 2});
  for (int skipped = 0; skipped < 7; ++skipped) whole.next();
  for (int iteration = 7; iteration < 12; ++iteration) {
    const Batch& expected = whole.next();
    const Batch& batch = rest.next();
    EXPECT_EQ(batch.labels, expected.labels);
    EXPECT_EQ(batch.images, expected.images);
  }
}

TEST(Loader, DividesOneRanksBatchAmongSeveralRanks) {
  const MemorySource source(small_data(), {{}, {1, 1, 1}});
  Loader whole(source, batches(8), {0, 6}), first(source, batches(4, 0, 2), {0, 6}),
      second(source, batches(4, 1, 2), {0, 6});
  for (int iteration = 0; iteration < 6; ++iteration) {
    const Batch& expected = whole.next();
    auto images = first.next().images;
    const Batch& other = second.next();
    images.insert(images.end(), other.images.begin(), other.images.end());
    EXPECT_EQ(images, expected.images);
  }
}

TEST(Loader, EvaluatesEachSampleOnceWithoutAugmentation) {
  const Dataset data = small_data();
  const MemorySource source(data, {{}, {1, 1, 1}});
  Loader loader(source, evaluation_batches({11, 23}, 8), {0, 3, 2});
  std::size_t sample = 11;
  for (const std::size_t size : {8, 8, 7}) {
    const Batch& batch = loader.next();
    ASSERT_EQ(batch.labels.size(), size);
    for (std::size_t i = 0; i < size; ++i, ++sample) {
      const auto pixels = data.image(sample);
      EXPECT_EQ(batch.labels[i], data.labels[sample]);
      EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(),
                             batch.images.begin() + static_cast<std::ptrdiff_t>(i * pixels.size())));
    }
  }
}

TEST(Loader, StopsWithBatchesUnread) {
  const MemorySource source(small_data(), {{}, {1, 1, 1}});
  Loader untouched(source, batches(8), {0, 1'000'000'000, 3});
  Loader begun(source, batches(8), {0, 1'000'000'000, 3});
  EXPECT_EQ(begun.next().labels.size(), 8u);
}

// Counts the images, and fails for chosen ones.
struct CountingSource : ImageSource {
  std::size_t size() const override { return 1000; }
  std::int64_t image_size() const override { return 1; }
  std::int64_t classes() const override { return 2; }
  std::int32_t label(std::size_t) const override { return 0; }
  void prepare(std::size_t sample, const std::optional<Draw>&, std::span<float>) const override {
    ++prepared;
    if (sample == 21 || sample == 19) throw std::runtime_error("sample " + std::to_string(sample));
  }
  mutable std::atomic<int> prepared = 0;
};

TEST(Loader, RunsNoFurtherAheadThanItsDepth) {
  const CountingSource source;
  Loader loader(source, evaluation_batches({0, 1000}, 3), {0, 300, 4, 4});  // 4 batches and the one in use
  const auto settles_at = [&](int expected) {
    for (int wait = 0; wait < 15'000 && source.prepared < expected; ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(source.prepared, expected);
  };
  settles_at(15);
  loader.next();
  settles_at(15);
  loader.next();
  settles_at(18);
}

TEST(Loader, ThrowsTheFirstFailureWhenItsBatchIsDue) {
  for (const std::size_t workers : {1, 2, 8}) {
    const CountingSource source;
    Loader loader(source, evaluation_batches({0, 1000}, 6), {0, 100, workers, 4});
    for (int batch = 0; batch < 3; ++batch) EXPECT_EQ(loader.next().labels.size(), 6u);
    try {
      loader.next();
      ADD_FAILURE() << "no error";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "sample 19");
    }
  }
}

// Some images of a set in memory cannot be read.
struct DamagedSource : MemorySource {
  explicit DamagedSource(std::set<std::size_t> bad)
      : MemorySource(small_data(), {{}, {1, 1, 1}}), bad(std::move(bad)) {}
  void prepare(std::size_t sample, const std::optional<Draw>& draw, std::span<float> out) const override {
    if (bad.contains(sample)) throw ImageError("image " + std::to_string(sample));
    MemorySource::prepare(sample, draw, out);
  }
  std::set<std::size_t> bad;
};

TEST(Loader, ReplacesABadTrainingImageByTheNextGoodOne) {
  const DamagedSource good({}), damaged({7, 8, 30, 49});
  for (const std::size_t workers : {1, 3}) {
    std::vector<std::string> said;
    std::mutex mutex;
    BadImages bad([&](const std::string& what) {
      const std::lock_guard lock(mutex);
      said.push_back(what);
    });
    Loader::Options options{0, 18, workers, 2};
    options.bad = &bad;
    Loader loader(damaged, batches(8), options);
    std::vector<float> image(good.values());
    for (std::uint64_t iteration = 0; iteration < 18; ++iteration) {  // three epochs
      const auto order = epoch_order(1, iteration / 6, 50);
      const Batch& batch = loader.next();
      ASSERT_EQ(batch.labels.size(), 8u);
      for (std::size_t i = 0; i < 8; ++i) {
        const std::uint32_t sample = order[(iteration % 6) * 8 + i];
        const std::uint32_t taken = sample == 7 || sample == 8 ? 9 : sample == 30 ? 31 : sample == 49 ? 0 : sample;
        good.prepare(taken, Draw{1, iteration / 6}, image);
        ASSERT_EQ(batch.labels[i], good.label(taken));
        ASSERT_TRUE(std::equal(image.begin(), image.end(),
                               batch.images.begin() + static_cast<std::ptrdiff_t>(i * image.size())));
      }
    }
    EXPECT_EQ(bad.samples(), (std::vector<std::uint64_t>{7, 8, 30, 49}));
    std::ranges::sort(said);
    EXPECT_EQ(said, (std::vector<std::string>{"image 30", "image 49", "image 7", "image 8"})) << "each once";
  }
}

TEST(Loader, LeavesBadImagesOutOfAnEvaluation) {
  const DamagedSource good({}), damaged({11, 14, 27, 28, 29, 30, 31, 32, 33, 34});
  BadImages bad([](const std::string&) {});
  Loader::Options options{0, 3, 2};
  options.bad = &bad;
  Loader loader(damaged, evaluation_batches({11, 23}, 8), options);
  std::vector<float> image(good.values());
  const std::vector<std::vector<std::size_t>> expected{{12, 13, 15, 16, 17, 18}, {19, 20, 21, 22, 23, 24, 25, 26}, {}};
  for (const std::vector<std::size_t>& samples : expected) {
    const Batch& batch = loader.next();
    ASSERT_EQ(batch.labels.size(), samples.size());
    ASSERT_EQ(batch.images.size(), samples.size() * good.values());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      good.prepare(samples[i], std::nullopt, image);
      EXPECT_EQ(batch.labels[i], good.label(samples[i]));
      EXPECT_TRUE(
          std::equal(image.begin(), image.end(), batch.images.begin() + static_cast<std::ptrdiff_t>(i * image.size())));
    }
  }
  EXPECT_EQ(bad.samples().size(), 9u);  // 34 is in another part
}

TEST(Loader, GivesUpIfNoImageIsGood) {
  std::set<std::size_t> all;
  for (std::size_t sample = 0; sample < 50; ++sample) all.insert(sample);
  const DamagedSource damaged(all);
  BadImages bad([](const std::string&) {});
  Loader::Options options{0, 3, 1};
  options.bad = &bad;
  Loader skipping(damaged, batches(8), options), stopping(damaged, batches(8), {0, 3, 1});
  const auto message = [](Loader& loader) {
    try {
      loader.next();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message(skipping).find("the data set: 50 pictures in a row cannot be read"), 0u) << message(skipping);
  EXPECT_EQ(message(stopping).substr(0, 6), "image ");
  EXPECT_NE(message(stopping).find("‹on-bad-image› skip"), std::string::npos);
}

// A read that does not return, as from a file server that has failed.
struct StuckSource : CountingSource {
  void prepare(std::size_t, const std::optional<Draw>&, std::span<float>) const override {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return released; });
  }
  void release() {
    const std::lock_guard lock(mutex);
    released = true;
    changed.notify_all();
  }
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  bool released = false;
};

TEST(Loader, ReportsWhetherItsThreadsHaveStopped) {
  StuckSource stuck;
  ImageProgress progress;
  Loader::Options options{0, 100, 2};
  options.progress = &progress;
  Loader loader(stuck, evaluation_batches({0, 1000}, 2), options);
  while (progress.source == nullptr) std::this_thread::yield();
  EXPECT_EQ(progress.source, &stuck);
  EXPECT_EQ(progress.prepared, 0u);
  EXPECT_FALSE(loader.stop(std::chrono::milliseconds(5)));
  stuck.release();
  EXPECT_TRUE(loader.stop(std::chrono::seconds(60)));
}

TEST(SyntheticData, CanHaveMoreClassesThanFitIntoAByte) {
  const TrainAndTest data = synthetic_data({8, 1000, 5000, 300, 1});
  EXPECT_EQ(data.train.classes, 1000);
  const auto& labels = data.train.labels;
  EXPECT_GT(*std::ranges::max_element(labels), 900);
  EXPECT_LT(*std::ranges::max_element(labels), 1000);
  EXPECT_GE(*std::ranges::min_element(labels), 0);
  EXPECT_GT(std::set<std::int32_t>(labels.begin(), labels.end()).size(), 200u);
}

TEST(SyntheticData, HasTheRequestedSizeAndStoresFewImages) {
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
