// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/cifar.h"

#include <gmock/gmock.h>

#include "tests/unit/trainer/temporary_directory.h"
#include "trainer/core/error.h"

namespace paceline::train {
namespace {

using testing::HasSubstr;

std::string record(char label, char first_pixel) {
  std::string bytes(cifar_record_bytes, '\x07');
  bytes[0] = label;
  bytes[1] = first_pixel;
  return bytes;
}

std::string error_of(const std::filesystem::path& file) {
  return message_of<Error>([&] {
    Dataset data;
    read_cifar_batch(file, data);
  });
}

TEST(CifarReader, ReadsTheRecordsOfAFileInOrder) {
  const TemporaryDirectory directory;
  put(directory / "batch.bin", record(3, 'a') + record(9, '\xff') + record(0, 'c'));
  Dataset data;
  read_cifar_batch(directory / "batch.bin", data);
  EXPECT_EQ(data.labels, (std::vector<std::int32_t>{3, 9, 0}));
  ASSERT_EQ(data.pixels.size(), 3 * cifar_image_bytes);
  EXPECT_EQ(data.image(0)[0], 'a');
  EXPECT_EQ(data.image(1)[0], 255);
  EXPECT_EQ(data.image(2)[0], 'c');
  EXPECT_EQ(data.image(2)[cifar_image_bytes - 1], 7);
}

TEST(CifarReader, JoinsTheTrainingFilesByNumberAndKeepsTheTestFileApart) {
  const TemporaryDirectory directory;
  put(directory / "data_batch_2.bin", record(2, 0) + record(3, 0));
  put(directory / "data_batch_1.bin", record(1, 0));
  put(directory / "data_batch_5.bin", record(5, 0));
  put(directory / "test_batch.bin", record(7, 0));
  const TrainAndTest data = read_cifar10(directory.path());
  EXPECT_EQ(data.train.labels, (std::vector<std::int32_t>{1, 2, 3, 5}));
  EXPECT_EQ(data.test.labels, (std::vector<std::int32_t>{7}));
  EXPECT_EQ(data.train.image_size, 32);
  EXPECT_EQ(data.train.classes, 10);
}

TEST(CifarReader, NamesAFileThatIsCutOffAndItsSize) {
  const TemporaryDirectory directory;
  put(directory / "batch.bin", (record(1, 0) + record(2, 0)).substr(0, 6145));
  EXPECT_THAT(error_of(directory / "batch.bin"),
              AllOf(HasSubstr((directory / "batch.bin").string()), HasSubstr("6145 bytes"), HasSubstr("again")));
}

TEST(CifarReader, RefusesAnEmptyFile) {
  const TemporaryDirectory directory;
  put(directory / "batch.bin", "");
  EXPECT_THAT(error_of(directory / "batch.bin"), HasSubstr("0 bytes"));
}

TEST(CifarReader, NamesTheRecordOfALabelAboveNine) {
  const TemporaryDirectory directory;
  put(directory / "batch.bin", record(9, 0) + record(9, 0) + record(10, 0));
  EXPECT_THAT(error_of(directory / "batch.bin"), AllOf(HasSubstr("batch.bin"), HasSubstr("record 2 has label 10")));
}

TEST(CifarReader, ExplainsHowToMakeAMissingDataSet) {
  const TemporaryDirectory directory;
  EXPECT_THAT(message_of<Error>([&] { read_cifar10(directory / "none"); }),
              AllOf(HasSubstr((directory / "none").string()), HasSubstr("paceline-train make-dataset")));
  EXPECT_THAT(message_of<Error>([&] { read_cifar10(directory.path()); }), HasSubstr("no data_batch_1.bin"));
  put(directory / "data_batch_1.bin", record(1, 0));
  EXPECT_THAT(message_of<Error>([&] { read_cifar10(directory.path()); }), HasSubstr("no test_batch.bin"));
}

TEST(CifarWriter, WritesFilesThatTheReaderReads) {
  const TemporaryDirectory directory;
  const std::string whole = record(4, 'x') + record(5, 'y') + record(6, 'z');
  put(directory / "in.bin", whole);
  Dataset data;
  read_cifar_batch(directory / "in.bin", data);
  write_cifar_batch(directory / "out.bin", data, 0, 3);
  EXPECT_EQ(content_of(directory / "out.bin"), whole);
  write_cifar_batch(directory / "out.bin", data, 1, 1);
  EXPECT_EQ(content_of(directory / "out.bin"), record(5, 'y'));
}

TEST(CifarWriter, LeavesNoFileBehindAfterAFailure) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "taken");  // a directory cannot be replaced by a file
  Dataset data;
  data.labels = {1};
  data.pixels.resize(cifar_image_bytes);
  EXPECT_THAT(message_of<Error>([&] { write_cifar_batch(directory / "taken", data, 0, 1); }), HasSubstr("taken"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(Fraction, KeepsTheFirstOfEachClass) {
  const std::vector<std::int32_t> labels = {1, 0, 0, 1, 0, 0, 3, 1, 0, 0, 0};
  EXPECT_EQ(first_of_each_class(labels, 0.5), (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(first_of_each_class(labels, 0.01), (std::vector<std::uint32_t>{0, 1, 6})) << "at least one";
  EXPECT_EQ(first_of_each_class(labels, 1).size(), labels.size());

  const TemporaryDirectory directory;
  put(directory / "batch.bin", record(3, 'a') + record(3, 'b') + record(5, 'c') + record(3, 'd') + record(3, 'e'));
  Dataset data;
  read_cifar_batch(directory / "batch.bin", data);
  keep_fraction(data, 0.5);
  EXPECT_EQ(data.labels, (std::vector<std::int32_t>{3, 3, 5}));
  ASSERT_EQ(data.pixels.size(), 3 * cifar_image_bytes);
  EXPECT_EQ(data.image(2)[0], 'c');
}

TEST(Normalization, GivesEachChannelMeanZeroAndVarianceOne) {
  Dataset data;
  data.image_size = 2;
  data.labels = {0};
  data.pixels = {0, 10, 20, 30, 100, 100, 102, 102, 5, 5, 5, 5};
  const Normalization n = normalization_of(data);
  EXPECT_FLOAT_EQ(n.mean[0], 15);
  EXPECT_FLOAT_EQ(n.scale[0], 1 / std::sqrt(125.0f));
  EXPECT_FLOAT_EQ(n.mean[1], 101);
  EXPECT_FLOAT_EQ(n.scale[1], 1);
  EXPECT_FLOAT_EQ(n.mean[2], 5);
  EXPECT_FLOAT_EQ(n.scale[2], 1);  // a channel of one value is not blown up
}

}  // namespace
}  // namespace paceline::train
