// SPDX-License-Identifier: Apache-2.0
#include "trainer/reporting/journal.h"

#include <gmock/gmock.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/trainer/temporary_directory.h"
#include "trainer/core/error.h"

namespace paceline::train {
namespace {

TEST(SteadyRate, IsTheMedianWithoutTheFirstTenth) {
  EXPECT_EQ(steady_rate({}, 32), 0);
  EXPECT_EQ(steady_rate({2}, 32), 16);
  EXPECT_EQ(steady_rate({100, 4}, 32), 8);
  EXPECT_EQ(steady_rate({100, 1, 4, 2}, 32), 16);
  EXPECT_EQ(steady_rate({100, 1, 4, 2, 8}, 32), 32 / 3.0);
  std::vector<double> seconds(20, 1.0);
  seconds[0] = seconds[1] = 100;
  for (std::size_t i = 2; i < 10; ++i) seconds[i] = 0.5;
  EXPECT_EQ(steady_rate(seconds, 32), 32);  // 8 of 18 are fast
}

std::vector<nlohmann::json> lines_of(const std::filesystem::path& file) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(content_of(file));
  double latest = 1.7e9;  // the time of each line, in seconds since 1970
  for (std::string line; std::getline(in, line);) {
    lines.push_back(nlohmann::json::parse(line));
    EXPECT_GE(lines.back().at("unix_s").get<double>(), latest);
    latest = lines.back().at("unix_s");
    lines.back().erase("unix_s");
  }
  return lines;
}

TEST(Journal, WritesOneObjectPerLineWithTheDocumentedKeys) {
  const TemporaryDirectory directory;
  testing::internal::CaptureStdout();
  {
    Journal journal(0, directory / "log.jsonl", false);
    journal.start({{"model", "resnet18"}});
    journal.iteration({.iteration = 0, .loss = 2.5, .seconds = 0.25, .learning_rate = 0.1, .gradient_norm = 1.5});
    EpochReport epoch;
    epoch.epoch = epoch.epochs = 1;
    epoch.train_loss = 1.5;
    epoch.images_per_s = 128;
    journal.epoch(epoch);
    epoch.test_loss = 1.25;
    epoch.test_accuracy = 0.75;
    epoch.test_top_5 = 0.875;
    epoch.seconds_left = 90;
    journal.epoch(epoch);
    EndReport end;
    end.images = 64;
    end.seconds = 4;
    end.steady_images_per_s = 32;
    journal.end(end);
  }
  const std::string said = testing::internal::GetCapturedStdout();
  const auto lines = lines_of(directory / "log.jsonl");
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0], (nlohmann::json{{"event", "start"}, {"model", "resnet18"}}));
  EXPECT_EQ(lines[1], (nlohmann::json{{"event", "iteration"},
                                      {"iteration", 0},
                                      {"loss", 2.5},
                                      {"seconds", 0.25},
                                      {"learning_rate", 0.1},
                                      {"gradient_norm", 1.5}}));
  EXPECT_EQ(lines[2].at("event"), "epoch");
  EXPECT_EQ(lines[2].at("epoch"), 1);
  EXPECT_EQ(lines[2].at("train_loss"), 1.5);
  EXPECT_EQ(lines[2].at("images_per_s"), 128);
  EXPECT_GT(lines[2].at("peak_memory_bytes"), 1 << 20);
  EXPECT_FALSE(lines[2].contains("test_accuracy"));  // it was not evaluated
  EXPECT_FALSE(lines[2].contains("test_top5_accuracy"));
  EXPECT_EQ(lines[3].at("test_accuracy"), 0.75);
  EXPECT_EQ(lines[3].at("test_top5_accuracy"), 0.875);
  EXPECT_EQ(lines[3].at("seconds_left"), 90);
  EXPECT_THAT(said, testing::HasSubstr("0.0 GFLOP/s, 1:30 left\n"));
  EXPECT_THAT(said, testing::HasSubstr("0.0 GFLOP/s\n")) << "the last epoch leaves no time";
  EXPECT_EQ(lines[4].at("event"), "end");
  EXPECT_EQ(lines[4].at("images"), 64);
  EXPECT_EQ(lines[4].at("seconds"), 4);
  EXPECT_EQ(lines[4].at("images_per_s"), 16);
  EXPECT_EQ(lines[4].at("steady_images_per_s"), 32);
  EXPECT_FALSE(lines[4].contains("seconds_to_accuracy"));  // it was not reached
}

TEST(Journal, AppendsWhenARunIsResumed) {
  const TemporaryDirectory directory;
  Journal(0, directory / "log.jsonl", false).iteration({0, 2, 1});
  Journal(0, directory / "log.jsonl", true).iteration({1, 1, 1});
  EXPECT_EQ(lines_of(directory / "log.jsonl").size(), 2u);
  Journal(0, directory / "log.jsonl", false).iteration({0, 2, 1});
  EXPECT_EQ(lines_of(directory / "log.jsonl").size(), 1u);
}

TEST(Journal, IsSilentOnOtherRanks) {
  const TemporaryDirectory directory;
  Journal(1, directory / "log.jsonl", false).iteration({0, 2, 1});
  EXPECT_FALSE(std::filesystem::exists(directory / "log.jsonl"));
}

TEST(Journal, NamesALogThatCannotBeWritten) {
  const TemporaryDirectory directory;
  EXPECT_THAT(message_of<Error>([&] { Journal(0, directory / "none" / "log.jsonl", false); }),
              testing::HasSubstr((directory / "none" / "log.jsonl").string()));
}

// The check value of the CRC-32C is 0xe3069283.
TEST(EventFile, HasTheChecksumsOfTensorFlow) {
  EXPECT_EQ(masked_crc32c("123456789"), 0xc78ab0e5u);
  EXPECT_EQ(masked_crc32c(""), 0xa282ead8u);
}

TEST(EventFile, HoldsOneRecordForTheVersionAndOneForEachCall) {
  const TemporaryDirectory directory;
  {
    Journal journal(0, "", false, directory / "a" / "events");
    journal.iteration({.iteration = 7, .loss = 0.5});
  }
  Journal(1, "", false, directory / "b");
  EXPECT_FALSE(std::filesystem::exists(directory / "b")) << "written by another rank than 0";
  const std::filesystem::directory_iterator files(directory / "a" / "events");
  EXPECT_THAT(files->path().filename().string(), testing::StartsWith("events.out.tfevents."));
  std::string rest = content_of(files->path());
  std::vector<std::string> events;
  while (!rest.empty()) {
    std::uint64_t length = 0;
    std::uint32_t of_length = 0, of_event = 0;
    ASSERT_GE(rest.size(), 16u);
    std::memcpy(&length, rest.data(), 8);
    std::memcpy(&of_length, rest.data() + 8, 4);
    ASSERT_GE(rest.size(), 16 + length);
    events.push_back(rest.substr(12, length));
    std::memcpy(&of_event, rest.data() + 12 + length, 4);
    EXPECT_EQ(of_length, masked_crc32c(rest.substr(0, 8)));
    EXPECT_EQ(of_event, masked_crc32c(events.back()));
    rest.erase(0, 16 + length);
  }
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].substr(9),
            "\x1a\x0d"
            "brain.Event:2");                     // field 3, 13 bytes
  EXPECT_EQ(events[1].substr(9, 2), "\x10\x08");  // step 8: after iteration 7
  const std::string loss = std::string("\x0a\x15\x0a\x0eiteration/loss\x15") + std::string("\0\0\0\x3f", 4);
  EXPECT_THAT(events[1], testing::HasSubstr(loss));
}

TEST(Progress, FitsItsWidthAndKeepsTheMostImportantEntries) {
  const ProgressState state{2, 3, 16, 64, 123.44, 1.23456, 3725};
  EXPECT_EQ(progress_line(state, 200),
            "epoch 2/3 [==========" + std::string(30, ' ') + "]  16/64  123.4 images/s  loss 1.2346  1:02:05 left");
  EXPECT_EQ(progress_line(state, 79),
            "epoch 2/3 [====             ]  16/64  123.4 images/s  loss 1.2346  1:02:05 left");
  EXPECT_EQ(progress_line(state, 60), "epoch 2/3  16/64  123.4 images/s  loss 1.2346  1:02:05 left");
  EXPECT_EQ(progress_line(state, 45), "epoch 2/3  16/64  123.4 images/s  loss 1.2346");
  EXPECT_EQ(progress_line(state, 44), "epoch 2/3  16/64  123.4 images/s");
  EXPECT_EQ(progress_line(state, 12), "epoch 2/3");
  EXPECT_EQ(progress_line(state, 4), "epoc");
  for (std::size_t width = 0; width < 120; ++width) EXPECT_LE(progress_line(state, width).size(), width);
  EXPECT_THAT(progress_line({1, 1, 64, 64, 1, 1, 59.6}, 79),
              testing::AllOf(testing::HasSubstr("[=="), testing::EndsWith(" 1:00 left")));
}

TEST(Progress, IsSilentWithoutATerminal) {
  testing::internal::CaptureStderr();
  {
    Progress progress(false);
    progress.show({});
    progress.clear();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Progress, LeavesNothingBehind) {
  testing::internal::CaptureStderr();
  {
    Progress progress(true);
    progress.show({});
    progress.show({});  // too soon
  }
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_THAT(shown, testing::AllOf(testing::StartsWith("\repoch 1/1 ["), testing::EndsWith("\033[K\r\033[K")));
  EXPECT_EQ(std::ranges::count(shown, '\r'), 2);
}

}  // namespace
}  // namespace paceline::train
