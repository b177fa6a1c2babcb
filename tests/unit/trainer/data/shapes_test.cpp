// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/shapes.h"

#include <gmock/gmock.h>

#include "tests/unit/trainer/temporary_directory.h"
#include "trainer/core/error.h"
#include "trainer/data/cifar.h"

namespace paceline::train {
namespace {

std::string all_files(const std::filesystem::path& directory) {
  std::string content;
  for (int file = 1; file <= 5; ++file)
    content += content_of(directory / ("data_batch_" + std::to_string(file) + ".bin"));
  return content + content_of(directory / "test_batch.bin");
}

TEST(MakeDataset, GivesTheSameBytesForTheSameSeed) {
  const TemporaryDirectory directory;
  make_dataset(directory / "a", 103, 21, 5);
  make_dataset(directory / "b", 103, 21, 5);
  make_dataset(directory / "c", 103, 21, 6);
  const std::string a = all_files(directory / "a");
  EXPECT_EQ(a.size(), 124 * cifar_record_bytes);
  EXPECT_TRUE(a == all_files(directory / "b"));
  EXPECT_FALSE(a == all_files(directory / "c"));
}

TEST(MakeDataset, SpreadsTheSamplesOverFiveFilesThatReadBack) {
  const TemporaryDirectory directory;
  make_dataset(directory.path(), 103, 21, 5);
  for (int file = 1; file <= 5; ++file) {
    const auto bytes = std::filesystem::file_size(directory / ("data_batch_" + std::to_string(file) + ".bin"));
    EXPECT_TRUE(bytes == 20 * cifar_record_bytes || bytes == 21 * cifar_record_bytes) << bytes;
  }
  const TrainAndTest data = read_cifar10(directory.path());
  EXPECT_EQ(data.train.size(), 103u);
  EXPECT_EQ(data.test.size(), 21u);
}

TEST(MakeDataset, DrawsEachSampleFromItsOwnNumbers) {
  const TemporaryDirectory directory;
  make_dataset(directory / "short", 50, 10, 5);
  make_dataset(directory / "long", 100, 20, 5);
  const TrainAndTest few = read_cifar10(directory / "short"), many = read_cifar10(directory / "long");
  EXPECT_TRUE(std::equal(few.train.pixels.begin(), few.train.pixels.end(), many.train.pixels.begin()));
  EXPECT_TRUE(std::equal(few.test.labels.begin(), few.test.labels.end(), many.test.labels.begin()));
  EXPECT_FALSE(std::equal(few.test.pixels.begin(), few.test.pixels.end(), many.train.pixels.begin()));
}

// 5,000 draws of ten classes: 500 each, within 4 standard deviations (85).
TEST(MakeDataset, DrawsAllClassesEquallyOften) {
  std::vector<int> seen(10);
  std::vector<std::uint8_t> pixels(cifar_image_bytes);
  for (std::uint64_t index = 0; index < 5000; ++index) ++seen[draw_shape(1, 0, index, pixels)];
  for (const int count : seen) EXPECT_NEAR(count, 500, 85);
}

TEST(MakeDataset, NamesADirectoryThatCannotBeCreated) {
  const TemporaryDirectory directory;
  put(directory / "file", "");
  EXPECT_THAT(message_of<Error>([&] { make_dataset(directory / "file" / "data", 10, 10, 1); }),
              testing::HasSubstr((directory / "file" / "data").string()));
  EXPECT_THAT(message_of<Error>([&] { make_dataset(directory / "none", 4, 1, 1); }), testing::HasSubstr("at least 5"));
}

}  // namespace
}  // namespace paceline::train
