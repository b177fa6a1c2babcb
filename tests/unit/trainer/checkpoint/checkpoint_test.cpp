// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/checkpoint.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tests/unit/trainer/reversed_model.h"
#include "tests/unit/trainer/temporary_directory.h"
#include "trainer/checkpoint/checkpoint_times.h"
#include "trainer/checkpoint/resume_notes.h"
#include "trainer/core/error.h"
#include "trainer/optim/sgd.h"

namespace paceline::train {
namespace {

using testing::HasSubstr;

const Position position{"resnet18", 32, 10, 5, 77, 20};

void fill(std::span<float> values, std::vector<float> with) { std::copy(with.begin(), with.end(), values.begin()); }

void write_example(const std::filesystem::path& file) {
  ReversedModel model;
  Sgd optimizer(7, {});
  fill(model.weights(), {1.1f, -2.2f, 1e-40f, 0, 4, 5, 6});  // with a denormal
  fill(model.statistics(), {0.25f, 0.5f});
  fill(optimizer.velocity(), {7, 8, 9, 0, -0.0f, 11, 12});
  write_checkpoint(file, position, model, optimizer);
}

std::string error_of_reading(const std::filesystem::path& file, const Position& expected = position) {
  return message_of<Error>([&] {
    ReversedModel model;
    Sgd optimizer(7, {});
    read_checkpoint(file, expected, model, optimizer);
  });
}

TEST(Checkpoint, RestoresEveryBit) {
  const TemporaryDirectory directory;
  write_example(directory / "run.checkpoint");
  ReversedModel model;
  Sgd optimizer(7, {});
  const Position read = read_checkpoint(directory / "run.checkpoint", position, model, optimizer);
  EXPECT_EQ(read.model, "resnet18");
  EXPECT_EQ(read.seed, 5u);
  EXPECT_EQ(read.iteration, 77u);
  EXPECT_EQ(read.iterations_per_epoch, 20u);
  const auto bits = [](std::span<const float> values) {
    std::vector<std::uint32_t> result;
    for (const float value : values) result.push_back(std::bit_cast<std::uint32_t>(value));
    return result;
  };
  EXPECT_EQ(bits(model.weights()), bits(std::vector<float>{1.1f, -2.2f, 1e-40f, 0, 4, 5, 6}));
  EXPECT_EQ(bits(model.statistics()), bits(std::vector<float>{0.25f, 0.5f}));
  EXPECT_EQ(bits(optimizer.velocity()), bits(std::vector<float>{7, 8, 9, 0, -0.0f, 11, 12}));
}

TEST(Checkpoint, HoldsThePublishedLayout) {
  const TemporaryDirectory directory;
  write_example(directory / "run.checkpoint");
  const std::string content = content_of(directory / "run.checkpoint");
  std::vector<float> last(3);  // b.weight's velocity, before the checksum
  std::memcpy(last.data(), content.data() + content.size() - 8 - 12, 12);
  EXPECT_EQ(last, (std::vector<float>{12, 11, -0.0f}));
}

TEST(Checkpoint, RefusesEveryCutAndEveryFlippedByte) {
  const TemporaryDirectory directory;
  write_example(directory / "run.checkpoint");
  const std::string whole = content_of(directory / "run.checkpoint");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    put(directory / "cut", whole.substr(0, length));
    ASSERT_THAT(error_of_reading(directory / "cut"), HasSubstr((directory / "cut").string())) << length;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    put(directory / "flipped", flipped);
    ASSERT_THAT(error_of_reading(directory / "flipped"), HasSubstr("checkpoint")) << at;
  }
}

TEST(Checkpoint, RefusesAnotherModel) {
  const TemporaryDirectory directory;
  write_example(directory / "run.checkpoint");
  Position other = position;
  other.model = "vgg16_bn";
  EXPECT_THAT(error_of_reading(directory / "run.checkpoint", other),
              AllOf(HasSubstr("resnet18"), HasSubstr("vgg16_bn")));
  other = position;
  other.classes = 100;
  EXPECT_THAT(error_of_reading(directory / "run.checkpoint", other), HasSubstr("100 classes"));
}

TEST(Checkpoint, KeepsEarlierVersions) {
  const TemporaryDirectory directory;
  ReversedModel model;
  Sgd optimizer(7, {});
  const std::filesystem::path file = directory / "run.checkpoint";
  const auto iteration_of = [&](const std::filesystem::path& version) {
    ReversedModel other;
    return read_checkpoint(version, position, other, optimizer).iteration;
  };
  for (std::uint64_t iteration = 1; iteration <= 4; ++iteration) {
    Position here = position;
    here.iteration = iteration;
    write_checkpoint(file, here, model, optimizer, {}, 3);
  }
  EXPECT_EQ(iteration_of(file), 4u);
  EXPECT_EQ(iteration_of(directory / "run.checkpoint.1"), 3u);
  EXPECT_EQ(iteration_of(directory / "run.checkpoint.2"), 2u);
  EXPECT_FALSE(std::filesystem::exists(directory / "run.checkpoint.3"));
  put(file, "damaged");
  EXPECT_THAT(error_of_reading(file), HasSubstr("not a checkpoint"));
  put(file, "paceline-checkpoint 1\nwith something that is not its own");
  EXPECT_THAT(error_of_reading(file), HasSubstr("use " + file.string() + ".1"));
}

TEST(Checkpoint, IsNotOverwrittenByDefault) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory / "run.checkpoint";
  check_no_checkpoint(file);
  put(file, "");
  check_no_checkpoint(file);  // an empty file may be overwritten
  write_example(file);
  EXPECT_THAT(message_of<Error>([&] { check_no_checkpoint(file); }),
              AllOf(HasSubstr(file.string()), HasSubstr("‹resume›"), HasSubstr("‹overwrite-checkpoint›")));
}

TEST(Checkpoint, KeepsTheBestWhenALaterOneReplacesIt) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory / "run.checkpoint";
  for (const std::uint64_t iteration : {1, 2, 3}) {
    ReversedModel model;
    Sgd optimizer(7, {});
    Position here = position;
    here.iteration = iteration;
    RunState state;
    state.best_accuracy = 0.5;
    state.warm_start = {1, 2, static_cast<float>(iteration)};
    write_checkpoint(file, here, model, optimizer, state);
    if (iteration < 3) keep_as_best(file);
  }
  const auto read = [](const std::filesystem::path& from, RunState& state) {
    ReversedModel model;
    Sgd optimizer(7, {});
    return read_checkpoint(from, position, model, optimizer, &state).iteration;
  };
  RunState best, last;
  EXPECT_EQ(read(best_checkpoint(file), best), 2u);
  EXPECT_EQ(read(file, last), 3u);
  EXPECT_EQ(best.best_accuracy, 0.5);
  EXPECT_EQ(best.warm_start, (std::vector<float>{1, 2, 2}));
  EXPECT_EQ(last.warm_start, (std::vector<float>{1, 2, 3}));
  EXPECT_THAT(message_of<Error>([&] { keep_as_best(directory / "none"); }),
              HasSubstr("none.best: the best checkpoint cannot be kept"));
}

TEST(Checkpoint, HoldsTheFactsOfTheRun) {
  const TemporaryDirectory directory;
  ReversedModel model;
  Sgd optimizer(7, {});
  RunState state;
  state.rank_statistics = {1, 2, 3, 4};
  state.facts = {"--lr=0.1\n", "digits", 0xfedcba9876543210, 500, 0};
  write_checkpoint(directory / "run.checkpoint", position, model, optimizer, state);
  RunState read;
  read_checkpoint(directory / "run.checkpoint", position, model, optimizer, &read);
  EXPECT_EQ(read.facts.settings, "--lr=0.1\n");
  EXPECT_EQ(read.facts.data, "digits");
  EXPECT_EQ(read.facts.data_hash, 0xfedcba9876543210);
  EXPECT_EQ(read.facts.iterations, 500u);
  EXPECT_EQ(read.facts.ranks, 2u);
}

TEST(ResumeNotes, NameEachDifferenceInALine) {
  const RunFacts then{"--lr=0.1\n--seed=1\n--nesterov=true\n--optimizer=sgd\n", "digits", 1, 100, 2};
  RunFacts now{"--lr=0.10\n--seed=1\n--nesterov=true\n--optimizer=sgd\n", "elsewhere/digits", 1, 100, 2};
  EXPECT_THAT(resume_notes(then, now, true), testing::IsEmpty());
  now = then;
  now.data_hash = 2;
  EXPECT_THAT(resume_notes(then, now, true),
              testing::ElementsAre("resumed with another data set: digits, whose pictures differ from those of the "
                                   "checkpoint's run"));
  now = {"--lr=0.2\n--seed=3\n--ghost-batch=8\n--optimizer=sgd\n", "letters", 2, 150, 4};
  EXPECT_THAT(
      resume_notes(then, now, true),
      testing::UnorderedElementsAre("resumed with another data set: letters, where the checkpoint's run had digits",
                                    "resumed with --lr 0.2, where the checkpoint's run had 0.1",
                                    "resumed with --seed 3, where the checkpoint's run had 1",
                                    "resumed without --nesterov, which the checkpoint's run had",
                                    "resumed with --ghost-batch, which the checkpoint's run did not have",
                                    "resumed with ranks: 4, where the checkpoint's run had 2",
                                    "resumed with a schedule for iterations: 150, where the checkpoint's run had 100"));
  EXPECT_THAT(resume_notes(then, now, false), testing::SizeIs(6));
  EXPECT_THAT(resume_notes({}, now, true), testing::IsEmpty());  // written by an older version
}

TEST(CheckpointEvery, TakesEpochsIterationsAndTimes) {
  EXPECT_TRUE(parse_checkpoint_every("epoch").each_epoch());
  EXPECT_EQ(parse_checkpoint_every("500").iterations, 500u);
  EXPECT_EQ(parse_checkpoint_every("90s").seconds, 90);
  EXPECT_EQ(parse_checkpoint_every("10m").seconds, 600);
  EXPECT_EQ(parse_checkpoint_every("1.5min").seconds, 90);
  EXPECT_EQ(parse_checkpoint_every("2h").seconds, 7200);
  for (const char* wrong : {"", "0", "-1", "0m", "-5m", "1.5", "m", "10d", "nanm", "infm", "epochs", "10 m"}) {
    EXPECT_THAT(message_of<Error>([&] { parse_checkpoint_every(wrong); }),
                HasSubstr("not a time to write checkpoints at"))
        << wrong;
  }
}

TEST(CheckpointEvery, MeetsMoreOftenWhenTheTimeIsNear) {
  EXPECT_EQ(plan_meeting(600, 0, 1, 10).next, 310u);  // half of the remaining time
  EXPECT_FALSE(plan_meeting(600, 300, 1, 310).write);
  EXPECT_EQ(plan_meeting(600, 300, 1, 310).next, 460u);
  EXPECT_TRUE(plan_meeting(600, 575, 1, 900).write);
  EXPECT_EQ(plan_meeting(600, 575, 1, 900).next, 1200u);
  EXPECT_TRUE(plan_meeting(1, 0.5, 30, 7).write);  // an iteration takes longer than the time
  EXPECT_EQ(plan_meeting(1, 0.5, 30, 7).next, 8u);
  EXPECT_EQ(plan_meeting(600, 1, 0, 7).next, 8u);
  // The ranks meet only a few times in an interval, and the checkpoint is only a little late, although iterations
  // become ten times as long.
  double now = 0, written = 0;
  std::uint64_t done = 0, next = 1;
  int meetings = 0;
  while (written == 0) {
    now += now < 300 ? 1 : 10;
    if (++done < next) continue;
    ++meetings;
    const Meeting meeting = plan_meeting(600, now, now / static_cast<double>(done), done);
    next = meeting.next;
    if (meeting.write) written = now;
  }
  EXPECT_LT(meetings, 15);
  EXPECT_LT(written, 2000);
}

TEST(Checkpoint, NamesAFileThatIsMissingOrCannotBeWritten) {
  const TemporaryDirectory directory;
  EXPECT_THAT(error_of_reading(directory / "none"), HasSubstr("No such file"));
  EXPECT_THAT(message_of<Error>([&] { write_example(directory / "none" / "run.checkpoint"); }),
              HasSubstr((directory / "none" / "run.checkpoint").string()));
}

}  // namespace
}  // namespace paceline::train
