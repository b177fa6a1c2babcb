// SPDX-License-Identifier: Apache-2.0
// The flight recorder, and hangs.
#include <sys/wait.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using format::EventType;

class RecordRing : public RecordTest {};

// The numbers of the marks from tick `from` to `to`: none is missing. `kept_from`: what the file claims to hold.
void expect_all_marks(const RecordedFile& file, std::uint64_t from, std::uint64_t to, std::uint64_t last_number,
                      std::uint64_t kept_from) {
  std::vector<std::uint64_t> numbers;
  std::uint64_t first_ticks = 0;
  for (const RecordedEvent& mark : file.of(EventType::mark_payload)) {
    if (mark.ticks < from || mark.ticks > to) continue;
    if (numbers.empty()) first_ticks = mark.ticks;
    numbers.push_back(mark.extension[0].low);
  }
  ASSERT_GT(numbers.size(), 100u);
  for (std::size_t i = 1; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], numbers[i - 1] + 1) << i;
  EXPECT_EQ(numbers.back(), last_number);
  // The mark before the first one is older than the window, or it would be included.
  const auto all = file.of(EventType::mark_payload);
  const auto before = std::find_if(all.begin(), all.end(), [&](const RecordedEvent& mark) {
    return mark.extension[0].low + 1 == numbers.front() && mark.ticks < first_ticks;
  });
  if (before == all.end()) {
    EXPECT_GE(from, kept_from);
  }
}

constexpr double window_s = 0.2;
constexpr std::uint64_t count = 60'000;  // marks that the program emits
// 16 chunks hold 16 × 2046 marks, fewer than the program emits, so that chunks are reused. The sampler would have one
// of them.
constexpr char ring[] = "--ring 0.2 --buffer 1M --sample off";

std::uint64_t window_ticks(const RecordedFile& file) {
  return static_cast<std::uint64_t>(window_s * file.file.header.ticks_per_second);
}

TEST_F(RecordRing, KeepsTheLastSecondsBeforeASignal) {
  const Ended ended = record(ring, CONTROL " ring signal");
  ASSERT_TRUE(ended.by_itself(3)) << ended.status << ended.err;
  const RecordedFile file = only_file();
  const auto triggers = file.of(EventType::trigger);
  ASSERT_EQ(triggers.size(), 1u);
  EXPECT_EQ(triggers[0].head.low, static_cast<std::uint64_t>(format::TriggerCause::signal) | SIGUSR2 << 8);
  EXPECT_LE(triggers[0].extension[0].high, triggers[0].ticks - window_ticks(file));
  expect_all_marks(file, triggers[0].ticks - window_ticks(file), triggers[0].ticks, count - 1,
                   triggers[0].extension[0].high);
  EXPECT_LT(file.of(EventType::mark_payload).size(), count) << "nothing was dropped";
  EXPECT_EQ(file.file.header.dropped[static_cast<int>(format::DropCause::ring)], 0u);
}

TEST_F(RecordRing, KeepsTheLastSecondsBeforeTheEnd) {
  for (const bool killed : {false, true}) {
    std::filesystem::remove_all(directory / "run");
    const Ended ended = record(ring, killed ? CONTROL " ring kill; exit $?" : CONTROL " ring exit");
    EXPECT_TRUE(ended.by_itself(killed ? 128 + SIGKILL : 0)) << ended.status << ended.err;
    const RecordedFile file = only_file();
    EXPECT_EQ(file.file.header.closed, killed ? 0u : 1u);
    const std::uint64_t end =
        killed ? file.of(EventType::mark_payload).back().ticks : file.of(EventType::process_end)[0].ticks;
    EXPECT_GT(file.file.header.kept_from, 0u);
    expect_all_marks(file, end - window_ticks(file), end, count - 1, file.file.header.kept_from);
    EXPECT_LT(file.of(EventType::mark_payload).size(), count);
    EXPECT_EQ(file.named(EventType::name, "number").size(), 1u) << "definitions outlive the ring";
    const Ended info = run(PACELINE " info run");
    EXPECT_NE(info.out.find("dropped by the flight recorder"), std::string::npos) << info.out;
  }
}

// A chunk of a program that emits seldom spans many seconds. Only its part within the last seconds is kept.
TEST_F(RecordRing, KeepsNoMoreThanWasAskedForAtALowRate) {
  for (const char* way : {" seldom", " seldom signal"}) {
    std::filesystem::remove_all(directory / "run");
    const Ended ended = record("--ring 0.2", std::string(CONTROL) + way);
    EXPECT_TRUE(ended.by_itself(0)) << ended.err;
    const RecordedFile file = only_file();
    const auto triggers = file.of(EventType::trigger);
    const std::uint64_t end = triggers.empty() ? file.of(EventType::process_end)[0].ticks : triggers[0].ticks;
    const auto marks = file.of(EventType::mark_payload);
    ASSERT_FALSE(marks.empty());
    for (const RecordedEvent& mark : marks) EXPECT_GE(mark.ticks, file.file.header.kept_from);
    // The recording ends a little before the event that shows its end, also on a busy machine.
    EXPECT_GE(marks.front().ticks + 2 * window_ticks(file), end) << way;
    EXPECT_EQ(file.file.header.dropped[static_cast<int>(format::DropCause::ring)], 0u);
  }
}

TEST_F(RecordRing, EventsBeyondTheMemoryAreCountedAndReported) {
  // The program's events alone, whose number is known.
  const Ended ended = record("--scheduler off --ring 60 --buffer 1M", CONTROL " ring exit");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const RecordedFile file = only_file();
  const std::uint64_t dropped = file.file.header.dropped[static_cast<int>(format::DropCause::ring)];
  const std::uint64_t marks = file.of(EventType::mark_payload).size();
  EXPECT_LT(marks, count);
  EXPECT_GE(marks + dropped, count);
  EXPECT_LE(marks + dropped, count + count / 100) << "definitions beside them, which stay, are counted, too";
  EXPECT_EQ(ended.recorder_lines(), 1) << ended.err;
  EXPECT_NE(ended.err.find(std::to_string(dropped) + ": ring shorter than asked for"), std::string::npos) << ended.err;
}

TEST_F(RecordRing, ASlowIterationTriggersTheRing) {
  const Ended ended = record("--ring 5 --ring-slow 8", CONTROL " iterations iteration 59");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const auto triggers = only_file().of(EventType::trigger);
  ASSERT_GE(triggers.size(), 1u);  // on a busy machine further ones may be slow
  const auto slow = std::find_if(triggers.begin(), triggers.end(), [](const RecordedEvent& trigger) {
    return trigger.head.low == (static_cast<std::uint64_t>(format::TriggerCause::slow_iteration) | 59u << 8);
  });
  EXPECT_NE(slow, triggers.end());
}

TEST_F(RecordRing, TheSignalDoesNotEndAProgramWithoutAHandler) {
  const Ended ended =
      record("--ring 5 --ring-signal USR1",
             "sh -c \"" CONTROL
             " count 60 signalled &"
             " until grep -q SigCgt:.*[2367abef]..\\$ /proc/\\$!/status; do sleep 0.05; done;"  // signal 10
             " kill -USR1 \\$!; touch signalled; wait \\$!\"");
  EXPECT_TRUE(ended.by_itself(0)) << ended.status << ended.err;
  EXPECT_EQ(only_file().of(EventType::trigger).size(), 1u);
}

TEST_F(RecordRing, AHangIsReportedWithTheRankThatNeverArrived) {
  const Ended ended =
      run(mpirun() + "-n 3 " PACELINE " record -o run --hang 1 --set a=b -- " CONTROL " hang stderr.txt; exit $?");
  EXPECT_FALSE(ended.by_itself(0));
  EXPECT_NE(ended.err.find("hang? rank 0"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("MPI_Allreduce #17 on MPI_COMM_WORLD has been open for"), std::string::npos) << ended.err;
  const Ended report = run(PACELINE " report --format json run");
  const nlohmann::json parsed = nlohmann::json::parse(report.out, nullptr, false);
  ASSERT_TRUE(parsed.is_object()) << report.err;
  ASSERT_EQ(parsed["runs"][0]["hangs"].size(), 1u) << report.out;
  const std::string text = parsed["runs"][0]["hangs"][0];
  EXPECT_EQ(
      text.rfind("Rank 2 never entered MPI_Allreduce #17 on MPI_COMM_WORLD; ranks 0 and 1 have waited in it since ", 0),
      0u)
      << text;
  EXPECT_NE(text.find("rank 2 was in looking out of the window"), std::string::npos) << text;
  EXPECT_NE(run(PACELINE " info run").out.find(text), std::string::npos);
  EXPECT_EQ(parsed["findings"][0]["text"], text);
}

TEST_F(RecordRing, ALongTailIsNotAHang) {
  const Ended ended = run(mpirun() + "-n 2 " PACELINE " record -o run --hang 0.3 -- " CONTROL " tail stderr.txt");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.err.find("hang?"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("quiet: rank 0"), std::string::npos) << ended.err;
  EXPECT_EQ(ended.err.find("rank 1"), std::string::npos) << ended.err;
  for (const RecordedFile& file : files()) EXPECT_TRUE(file.of(EventType::trigger).empty());
}

TEST_F(RecordRing, AnIterationThatDoesNotEndMayBeAHang) {
  const Ended ended = record("--ring 5 --hang 0.3", CONTROL " stuck stderr.txt");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_NE(ended.err.find("an iteration is open, and no MPI call"), std::string::npos) << ended.err;
  EXPECT_LT(ended.err.find("hang?"), ended.err.find("quiet:")) << ended.err;
  EXPECT_NE(ended.err.find("quiet:"), std::string::npos) << ended.err;
  const RecordedFile file = only_file();
  const auto triggers = file.of(EventType::trigger);
  ASSERT_EQ(triggers.size(), 1u);
  EXPECT_EQ(triggers[0].head.low & 0xff, static_cast<std::uint64_t>(format::TriggerCause::hang));
  EXPECT_LE(triggers[0].extension[0].high, file.named(EventType::push, "iteration").at(0).ticks)
      << "all is written out";
}

}  // namespace
}  // namespace paceline::test
