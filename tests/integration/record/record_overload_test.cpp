// SPDX-License-Identifier: Apache-2.0
// More events than the recorder can write: which ones are kept, how the file reports the others, and --lossless.
#include <sys/mount.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using format::EventType;

constexpr std::size_t iterations = 20;

class RecordOverload : public RecordTest {
 protected:
  nlohmann::json info() const {
    return nlohmann::json::parse(run(PACELINE " info --format json run").out, nullptr, false)["traces"][0];
  }
};

TEST_F(RecordOverload, KeepsTheOuterRangesAndTheTimesOfTheOthers) {
  const Ended ended = record("--buffer 256K", CONTROL " overload 100000");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const RecordedFile file = only_file();
  EXPECT_EQ(file.named(EventType::push, "iteration").size(), iterations);
  EXPECT_EQ(file.named(EventType::push, "forward").size(), iterations);
  const std::uint64_t dropped = file.file.header.dropped[static_cast<int>(format::DropCause::no_free_chunk)];
  ASSERT_GT(dropped, 1000u);
  std::uint64_t located = 0;
  for (const format::LostStretch& lost : file.file.lost) located += lost.events;
  EXPECT_EQ(located, dropped);
  EXPECT_EQ(info()["dropped"], dropped);
  EXPECT_GT(info()["lost"].size(), 0u);
  EXPECT_NE(run(PACELINE " info run").out.find("events lost on main thread from"), std::string::npos);
  const auto report = nlohmann::json::parse(run(PACELINE " report --format json run").out, nullptr, false)["runs"][0];
  EXPECT_EQ(report["lost"]["located"], true);
  EXPECT_EQ(report["lost"]["events"], dropped);
  EXPECT_GT(report["lost"]["iterations_left_out"], 0);
  EXPECT_FALSE(report.contains("breakdown"));
}

TEST_F(RecordOverload, WithLosslessNothingIsLostAndInfoShowsTheWaits) {
  const Ended ended = record("--buffer 256K --lossless", CONTROL " overload 20000");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const RecordedFile file = only_file();
  EXPECT_EQ(file.dropped(), 0u);
  EXPECT_EQ(file.named(EventType::push, "inner").size(), 20'000 * iterations);
  EXPECT_GT(info()["recorder_wait_ns"], 0);
  EXPECT_NE(run(PACELINE " info run").out.find("for the recorder in all"), std::string::npos);
}

// A signal handler emits ranges, also while its thread waits for the recorder. Of the thread's own ranges none is lost
// where there is room or the thread waits for it, and those of the handler are recorded or counted.
TEST_F(RecordOverload, ASignalHandlerThatEmitsRangesHarmsNoOthers) {
  for (const char* options : {"--buffer 256K --lossless", "--buffer 16M", "--buffer 256K"}) {
    SCOPED_TRACE(options);
    const bool has_room = std::string_view(options) != "--buffer 256K";
    // Without events of the recorder's own, which overload drops and counts, too.
    const std::string without = " --sample off --scheduler off --counters 0";
    const Ended ended = record(options + without, CONTROL " interrupted 60000");
    EXPECT_TRUE(ended.by_itself(0)) << ended.err;
    const RecordedFile file = only_file();
    EXPECT_FALSE(file.file.damaged) << file.file.damage;
    const std::size_t own = file.of(EventType::push).size() - file.named(EventType::push, "handler").size() -
                            file.named(EventType::push, "recorder wait").size();
    const std::size_t of_handler = 2 * static_cast<std::size_t>(std::stoi(ended.out));
    const std::size_t dropped = file.dropped();
    EXPECT_GT(of_handler, 0u);
    if (has_room) {
      EXPECT_EQ(own, 60'000u);
      EXPECT_EQ(2 * file.named(EventType::push, "handler").size() + dropped, of_handler);
    }
    const std::size_t waits = 2 * file.named(EventType::push, "recorder wait").size();
    EXPECT_EQ(file.of(EventType::push).size(), file.of(EventType::pop).size());
    EXPECT_EQ(file.of(EventType::push).size() * 2 - waits + dropped, 120'000u + of_handler);
    std::uint64_t located = 0;
    for (const format::LostStretch& lost : file.file.lost) located += lost.events;
    EXPECT_EQ(located, dropped);
    std::filesystem::remove_all(directory / "run");
  }
}

// A timer's handler emits from the start of the program on: while MPI_Init opens the file, and in a forked child. No
// start hangs, each file can be read, its ranges are balanced, and the handler's events that are missing are counted
// with a cause of their own. Where the handler itself initialises NVTX (`during`), a start may hang inside NVTX with
// any tool, though rarely at this rate.
TEST_F(RecordOverload, NoStartHangsWhoseSignalHandlerEmits) {
  std::uint64_t interrupted = 0;
  for (const std::string way : {"nvtx before", "mpi before", "mpi child", "mpi during"}) {
    const int period_us = way == "mpi during" ? 1000 : 100, starts = 10;
    int hung = 0;
    for (int start = 0; start < starts; ++start) {
      const Ended ended =
          record("", "timeout -s KILL 30 " HANDLERS " " + std::to_string(period_us) + " " + way + "; exit $?");
      const bool failed = ended.by_itself(128 + SIGKILL) || (way == "mpi during" && !ended.by_itself(0));
      hung += failed ? 1 : 0;
      if (failed) {
        std::filesystem::remove_all(directory / "run");
        continue;
      }
      EXPECT_TRUE(ended.by_itself(0)) << ended.err;
      std::uint64_t own = 0, lost = 0;
      for (const RecordedFile& file : files()) {
        EXPECT_FALSE(file.file.damaged) << file.file.damage;
        EXPECT_EQ(file.of(EventType::push).size(), file.of(EventType::pop).size());
        own += file.of(EventType::push).size() - file.named(EventType::push, "handler").size();
        EXPECT_EQ(file.dropped(), file.file.interrupted);
        lost += file.file.interrupted;
      }
      EXPECT_EQ(own, way == "mpi child" ? 400u : 200u) << way;
      if (lost > 0) {
        EXPECT_NE(ended.err.find("of signal handlers that interrupted the recorder"), std::string::npos) << ended.err;
      }
      interrupted += lost;
      std::filesystem::remove_all(directory / "run");
    }
    EXPECT_LE(hung, way == "mpi during" ? starts / 3 : 0) << way;
  }
  EXPECT_GT(interrupted, 0u) << "no handler interrupted the recorder";
}

// A full disk costs events, but neither the program nor the file, and no thread waits for the disk.
TEST_F(RecordOverload, WithLosslessAFullDiskCostsEventsAlone) {
  const std::filesystem::path small = directory / "run";
  std::filesystem::create_directory(small);
  if (mount("tmpfs", small.c_str(), "tmpfs", 0, "size=1100k") != 0) GTEST_SKIP() << "mounting a small disk needs root";
  const Ended ended = record("--buffer 1M --lossless", CONTROL " overload 160000");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_NE(ended.err.find("No space left"), std::string::npos) << ended.err;
  {
    const RecordedFile file = only_file();
    EXPECT_FALSE(file.file.damaged) << file.file.damage;
    EXPECT_GT(file.file.header.dropped[static_cast<int>(format::DropCause::disk)], 0u);
    EXPECT_EQ(file.file.header.dropped[static_cast<int>(format::DropCause::no_free_chunk)], 0u);
  }
  umount(small.c_str());
}

// None of these may make a thread wait without end or leave an unreadable file.
TEST_F(RecordOverload, LosslessDoesNotBlockAtAFullFileARingOrASuddenEnd) {
  for (const char* options :
       {"--buffer 256K --lossless --max-size 1M", "--buffer 256K --lossless --ring 1", "--buffer 256K --ring 1"}) {
    const Ended ended = record(options, CONTROL " overload 20000");
    EXPECT_TRUE(ended.by_itself(0)) << options << ended.err;
    EXPECT_FALSE(only_file().file.damaged) << options << only_file().file.damage;
    std::filesystem::remove_all(directory / "run");
  }
}

}  // namespace
}  // namespace paceline::test
