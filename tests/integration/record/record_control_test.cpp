// SPDX-License-Identifier: Apache-2.0
// The options of `paceline record` on real programs: what is recorded, how much, and at what cost.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using format::EventType;

class RecordControl : public RecordTest {
 protected:
  nlohmann::json info() const {
    return nlohmann::json::parse(run(PACELINE " info --format json run").out, nullptr, false);
  }
  nlohmann::json report() const {
    return nlohmann::json::parse(run(PACELINE " report --format json run").out, nullptr, false);
  }
};

TEST_F(RecordControl, IterationsAreCountedFromZeroAndBothEndsAreRecorded) {
  const Ended ended = record("--iterations 25:34", CONTROL " iterations");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const RecordedFile file = only_file();
  EXPECT_EQ(file.named(EventType::push, "iteration").size(), 10u);
  EXPECT_EQ(file.named(EventType::push, "work").size(), 10u);
  EXPECT_EQ(file.named(EventType::mark, "between").size(), 9u);
  EXPECT_EQ(file.named(EventType::push, "epoch").size(), 1u);  // the second one began within
  EXPECT_EQ(file.of(EventType::recording).size(), 3u);         // off at the start, on, off
  EXPECT_EQ(file.of(EventType::recording)[0].ticks, 0u);
  // Time that was not recorded does not count: ten iterations of a little more than 1 ms are nearly all of the rest.
  const nlohmann::json rank = info()["traces"][0];
  EXPECT_EQ(rank["gaps"].size(), 2u) << rank;
  EXPECT_EQ(rank["gaps"][0]["reason"], "outside --iterations");
  const nlohmann::json reported = report()["runs"][0];
  EXPECT_EQ(reported["iterations"]["count"], 10);
  EXPECT_EQ(reported["per_rank"][0]["wall_ns"], rank["recorded_ns"]);
  EXPECT_LT(rank["recorded_ns"].get<double>(), 0.7 * rank["span_ns"].get<double>());
  EXPECT_NE(report()["findings"].dump().find("The rest was not recorded: outside --iterations."), std::string::npos);
  std::int64_t phases = 0;
  for (const auto& [phase, ns] : reported["per_rank"][0]["phases"].items()) phases += ns.get<std::int64_t>();
  EXPECT_EQ(phases, rank["recorded_ns"]);
}

// What a program says of itself at its start is known also of a later part.
TEST_F(RecordControl, AMarkThatDescribesTheRunIsRecordedBeforeItsPart) {
  const Ended ended = record("--iterations 3:4", CONTROL " described");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const RecordedFile file = only_file();
  EXPECT_EQ(file.named(EventType::push, "iteration").size(), 2u);
  EXPECT_EQ(file.named(EventType::mark, "{\"images_per_iteration\": 8}").size(), 1u);
  EXPECT_EQ(file.named(EventType::mark, "begin").size(), 0u);
}

TEST_F(RecordControl, IterationsMayHaveAnyName) {
  const Ended ended = record("--iterations 58: --iteration-name \"lap*\"", CONTROL " iterations \"lap of honour\"");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(only_file().named(EventType::push, "lap of honour").size(), 2u);
  EXPECT_EQ(report()["runs"][0]["iterations"]["count"], 2);
}

TEST_F(RecordControl, DelayAndDurationSelectAWindow) {
  const Ended ended = record("--delay 0.5 --duration 0.4", CONTROL " count 1.5");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const RecordedFile file = only_file();
  const auto marks = file.of(EventType::mark_payload);
  const auto states = file.of(EventType::recording);
  ASSERT_EQ(states.size(), 3u);
  ASSERT_GT(marks.size(), 100u);
  EXPECT_GT(marks.front().extension[0].low, 100u);  // earlier numbers are missing
  const double second = file.file.header.ticks_per_second;
  EXPECT_GE(marks.front().ticks, states[1].ticks);
  EXPECT_LE(marks.back().ticks, states[2].ticks + second / 10);
  const double window = static_cast<double>(states[2].ticks - states[1].ticks) / second;
  EXPECT_GE(window, 0.39);
  EXPECT_LT(window, 1.0);
}

TEST_F(RecordControl, ACaptureRangeIsRecordedAndTheRealFunctionsAreCalled) {
  const Ended ended = record("--capture-range cudaProfilerApi", CONTROL " capture");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.out, "4 calls\n");
  const RecordedFile file = only_file();
  EXPECT_EQ(file.of(EventType::push).size(), 10u);
  EXPECT_EQ(file.named(EventType::push, "captured").size(), 10u);
}

TEST_F(RecordControl, AFileEndsAtItsLargestSizeWithAMessage) {
  const Ended ended = record("--max-size 1M", CONTROL " memory");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_NE(ended.err.find("--max-size"), std::string::npos) << ended.err;
  const RecordedFile file = only_file();
  EXPECT_LE(std::filesystem::file_size(file.file.path), 1u << 20);
  EXPECT_FALSE(file.file.damaged) << file.file.damage;
  EXPECT_GT(file.of(EventType::push).size(), 10'000u);
  const auto states = file.of(EventType::recording);
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].head.low, static_cast<std::uint64_t>(format::file_is_full));
}

TEST_F(RecordControl, MemoryStaysBelow64Megabytes) {
  const Ended without = run(CONTROL " memory");
  const Ended with = record("", CONTROL " memory");
  EXPECT_TRUE(with.by_itself(0)) << with.err;
  const long more_kib = std::stol(with.out) - std::stol(without.out);
  EXPECT_GT(more_kib, 4'000);  // it really records
  EXPECT_LT(more_kib, 64'000'000 / 1024);
  std::filesystem::remove_all(directory / "run");
  const Ended less = record("--max-memory 24M", CONTROL " memory");
  EXPECT_LT(std::stol(less.out) - std::stol(without.out), 24 << 10);
}

// All threads of the recorder, including those for counters and for the clocks of other machines.
TEST_F(RecordControl, NoThreadSpins) {
  const std::string idle = recorded("PACELINE_TEST_CLOCK=domain=other") + CONTROL " idle mpi";
  const Ended ended = run(mpirun() + "-n 1 " + recorded() + CONTROL " idle mpi : -n 1 " + idle);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  std::map<std::string, std::vector<long>> used;  // ns of a second, by thread
  std::istringstream lines(ended.out);
  std::string name;
  for (long ns = 0, turns = 0; lines >> name >> ns >> turns;) {
    used[name].push_back(ns);
    EXPECT_LT(turns, name == "paceline-count" ? 30 : 15) << ended.out;
  }
  EXPECT_EQ(used["paceline"].size(), 4u) << ended.out;  // the drain and the sampler of stacks of two ranks
  EXPECT_EQ(used["paceline-count"].size(), 2u) << ended.out;
  EXPECT_GE(used["paceline-clock"].size(), 1u) << ended.out;
  EXPECT_EQ(used.size(), 3u) << ended.out;
  for (const auto& [thread, times] : used) {
    for (const long ns : times) EXPECT_LT(ns, thread == "paceline-count" ? 20'000'000 : 1'000'000) << thread;
  }
  EXPECT_GT(used["paceline"][0], 0);
}

// `paceline record` on another host sees only the times of a job's files. A quiet job renews them after two seconds,
// and then every minute.
TEST_F(RecordControl, AQuietJobRenewsTheTimesOfItsFiles) {
  namespace fs = std::filesystem;
  const fs::path run_directory = directory / "run", stop = directory / "stop";
  Ended ended;
  std::thread job([&] { ended = record("", CONTROL " quiet " + stop.string()); });
  wait_until([](const std::vector<RecordedFile>& files) { return !files.empty(); });
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  std::vector<fs::path> paths{run_directory / ".paceline-job"};
  for (const auto& entry : fs::directory_iterator(run_directory)) {
    if (entry.path().extension() == ".pace") paths.push_back(entry.path());
  }
  EXPECT_EQ(paths.size(), 2u);
  for (const fs::path& path : paths) fs::last_write_time(path, old);
  const auto renewed = [&](const fs::path& path) { return fs::last_write_time(path) > old + std::chrono::minutes(30); };
  for (int wait = 0; wait < 300 && !std::ranges::all_of(paths, renewed); ++wait) usleep(10'000);
  EXPECT_TRUE(std::ranges::all_of(paths, renewed));
  std::ofstream(stop).put('x');
  job.join();
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
}

TEST_F(RecordControl, MaxMemoryMakesTheBufferSmaller) {
  const Ended ended = record("--max-memory 8M", CONTROL " status");
  EXPECT_TRUE(ended.by_itself(7)) << ended.err;
  std::filesystem::remove_all(directory / "run");
  const Ended killed = record("--max-memory 8M", CONTROL " kill-self");
  EXPECT_TRUE(WIFSIGNALED(killed.status) || killed.by_itself(128 + SIGTERM)) << killed.status;
  EXPECT_EQ(only_file().file.header.live_bytes, 4u << 20);
}

TEST_F(RecordControl, NamesBeyondTheMemoryAreCountedAndTheirRangesRecorded) {
  const Ended ended = record("--max-memory 4M", CONTROL " names");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const RecordedFile file = only_file();
  const std::uint64_t dropped = file.file.header.dropped[static_cast<int>(format::DropCause::too_many_names)];
  EXPECT_GT(dropped, 10'000u);
  EXPECT_EQ(ended.recorder_lines(), 1) << ended.err;
  EXPECT_NE(ended.err.find("no events are lost, but " + std::to_string(dropped) + " times a name was not kept"),
            std::string::npos)
      << ended.err;
  EXPECT_GT(file.named(EventType::push, "(more names than can be kept)").size(), 10'000u);
  EXPECT_GT(file.named(EventType::push, "one of many names: 17").size(), 0u);
}

// Each iteration has a name of its own, and most names are not kept.
TEST_F(RecordControl, IterationsWhoseNamesWereNotKeptAreCounted) {
  const auto iterations = [&](const std::string& options, const char* name) {
    std::filesystem::remove_all(directory / "run");
    const Ended ended = record(options, std::string(CONTROL " names ") + name);
    EXPECT_TRUE(ended.by_itself(0)) << ended.err;
    EXPECT_GT(only_file().file.header.dropped[static_cast<int>(format::DropCause::too_many_names)], 10'000u);
    // The line of the table; the JSON has a row for each iteration.
    std::istringstream line(run(PACELINE " report run | grep -m 1 \"^  iterations  \"", 600).out);
    std::string word, count;
    line >> word >> count;
    return count;
  };
  EXPECT_EQ(iterations("--max-memory 4M --iteration-name \"epoch *\"", "epoch"), "60,000");
  EXPECT_EQ(iterations("", "step 400000"), "400,000");
}

TEST_F(RecordControl, StagedFilesAreMovedAtTheEnd) {
  const Ended ended = record("--stage local", CONTROL " status");
  EXPECT_TRUE(ended.by_itself(7)) << ended.err;
  EXPECT_EQ(ended.recorder_lines(), 0) << ended.err;
  EXPECT_EQ(only_file().file.header.closed, 1u);
  EXPECT_EQ(only_file().of(EventType::push).size(), 1000u);
  EXPECT_TRUE(std::filesystem::is_empty(directory / "local"));
}

TEST_F(RecordControl, StagedFilesOfAKilledProgramAreMovedByRecord) {
  const std::filesystem::path stage = "/dev/shm" / directory.filename();
  const Ended ended = run(PACELINE " record -o run --stage " + stage.string() + " -- " CONTROL " kill-self; exit $?");
  EXPECT_TRUE(ended.by_itself(128 + SIGTERM)) << ended.status << ended.err;
  const RecordedFile file = only_file();
  EXPECT_EQ(file.file.header.closed, 0u);
  EXPECT_EQ(file.of(EventType::push).size(), 1000u);
  EXPECT_TRUE(std::filesystem::is_empty(stage));
  std::filesystem::remove_all(stage);
}

// As mpirun does that kills all processes of a job: `paceline record` cannot move anything any more.
TEST_F(RecordControl, StagedFilesAreMovedByInfoIfRecordWasKilledToo) {
  const Ended ended =
      run(PACELINE " record -o run --stage local -- sh -c \"" CONTROL
                   " kill-self; touch killed; exec sleep 60\" & parent=$!; until [ -e killed ]; do sleep 0.05; done;"
                   " child=$(cat /proc/$parent/task/$parent/children); kill -9 $parent $child; exit 0");
  EXPECT_TRUE(ended.by_itself(0)) << ended.status << ended.err;
  EXPECT_TRUE(files().empty());
  const Ended info = run(PACELINE " info run");
  EXPECT_TRUE(info.by_itself(0)) << info.err;
  EXPECT_NE(info.err.find("run: 1 trace of killed programs moved here from "), std::string::npos) << info.err;
  EXPECT_EQ(only_file().of(EventType::push).size(), 1000u);
  EXPECT_TRUE(std::filesystem::is_empty(directory / "local"));
  EXPECT_EQ(run(PACELINE " report run").err, "") << "the note is gone";
}

// Another host's files are named; they cannot be moved from here.
TEST_F(RecordControl, StagedFilesOfAnotherHostAreNamed) {
  EXPECT_TRUE(record("", CONTROL " status").by_itself(7));
  std::ofstream(directory / "run" / ".paceline-stage-node7-paceline-abc") << "node7 12 34\n/scratch/paceline-abc\n";
  const Ended info = run(PACELINE " info run");
  EXPECT_TRUE(info.by_itself(0)) << info.err;
  EXPECT_NE(info.err.find("traces may be left on node7 in /scratch/paceline-abc (--stage)"), std::string::npos)
      << info.err;
}

TEST_F(RecordControl, AStagedFileThatCannotBeMovedStaysAndIsNamed) {
  // The output directory does not exist any more when the program ends.
  const Ended ended = record("--stage local", "sh -c \"" CONTROL " status; s=\\$?; rm -rf run; touch run; exit \\$s\"");
  // The recorder moved its file before the directory was removed. So the file of the program that is killed afterwards
  // must stay.
  EXPECT_TRUE(ended.by_itself(7)) << ended.err;
  std::filesystem::remove(directory / "run");
  const Ended killed =
      record("--stage local", "sh -c \"rm -rf run; touch run; " CONTROL " kill-self; rm -rf run; touch run; exit 9\"");
  EXPECT_TRUE(killed.by_itself(9)) << killed.status << killed.err;
  EXPECT_NE(killed.err.find("it stays there"), std::string::npos) << killed.err;
  int left = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory / "local")) {
    left += entry.path().extension() == ".pace";
  }
  EXPECT_EQ(left, 1);
}

// NVTX loads what NVTX_INJECTION64_PATH names in a static program, too.
TEST_F(RecordControl, AStaticProgramWithRangesRunsUnharmed) {
  const std::string program = STATIC_PROGRAM;
  if (program.empty()) GTEST_SKIP() << "there is no static C library (libc6-dev)";
  for (const std::string& kind : {program, program + "-pie"}) {
    const Ended ended = record("", kind + " " NVTX_ENTRY);
    EXPECT_TRUE(ended.by_itself(5)) << kind << ' ' << ended.status << ended.err;
    EXPECT_EQ(ended.out, "static\nloaded\n") << "NVTX could load the entry";
    const Ended launched = record("", "nice " + kind + " " NVTX_ENTRY);
    EXPECT_TRUE(launched.by_itself(5)) << kind << ' ' << launched.status << launched.err;
    EXPECT_EQ(launched.out, "static\nloaded\n");
  }
}

TEST_F(RecordControl, AProgramOfAnotherCLibraryRunsUnharmedWithOneLine) {
  const std::string program = MUSL_PROGRAM;
  if (program.empty()) GTEST_SKIP() << "there is no musl-gcc (musl-tools)";
  const Ended ended = record("", program);
  EXPECT_TRUE(ended.by_itself(3)) << ended.status;
  EXPECT_EQ(ended.out, "musl\n");
  EXPECT_EQ(ended.err, "paceline record: " + program +
                           " uses the C library musl: the recorder cannot be loaded into it, so it runs unrecorded\n");
  const Ended launched = record("", "nice " + program);
  EXPECT_TRUE(launched.by_itself(3)) << launched.status;
  EXPECT_EQ(launched.out + launched.err, "musl\n");
}

TEST_F(RecordControl, AProgramThatForbidsTheCounterRunsUnharmed) {
  const Ended late = record("", CONTROL " no-counter");
  EXPECT_TRUE(late.by_itself(7)) << late.status;
  EXPECT_THAT(late.err, testing::HasSubstr("PR_SET_TSC), which all clocks need: recording ends here\n"));
  ASSERT_EQ(files().size(), 1U);
  EXPECT_EQ(files()[0].of(format::EventType::push).size(), 1000U);

  std::filesystem::remove_all(directory / "run");
  const Ended early = record("", CONTROL " no-counter-at-all");
  EXPECT_TRUE(early.by_itself(7)) << early.status;
  EXPECT_THAT(early.err, testing::StartsWith("paceline: not recording: the program forbids reads of the time stamp"));
  EXPECT_TRUE(files().empty());
}

TEST_F(RecordControl, SanitizedProgramsAreRecorded) {
  for (const char* sanitizer : {"address", "thread", "undefined"}) {
    const std::string program = std::string(SANITIZED_PROGRAM) + sanitizer;
    for (const std::string& launcher : {std::string(), std::string("nice ")}) {
      std::filesystem::remove_all(directory / "run");
      const Ended ended = record("", launcher + program);
      EXPECT_TRUE(ended.by_itself(4)) << sanitizer << ' ' << ended.status;
      EXPECT_EQ(ended.out, "sanitized\n") << sanitizer;
      EXPECT_EQ(ended.err, "") << sanitizer;
      ASSERT_EQ(files().size(), 1U) << sanitizer;
      EXPECT_EQ(files()[0].of(format::EventType::push).size(), 2000U) << sanitizer;
      EXPECT_EQ(files()[0].of(format::EventType::pop).size(), 2000U) << sanitizer;
    }
  }
}

TEST_F(RecordControl, TheEntryOfNvtxNeedsNoLibraryAndNoThreadLocalStorage) {
  const Ended dynamic = run("readelf -Wdl " NVTX_ENTRY);
  ASSERT_TRUE(dynamic.by_itself(0)) << dynamic.err;
  EXPECT_THAT(dynamic.out, testing::HasSubstr("SONAME"));
  for (const char* unwanted : {"NEEDED", "TLS", "INIT"})
    EXPECT_THAT(dynamic.out, testing::Not(testing::HasSubstr(unwanted)));
}

// A launcher may clear LD_PRELOAD.
TEST_F(RecordControl, AProgramWithoutThePreloadIsRecordedThroughNvtx) {
  const Ended ended = record("", "env -u LD_PRELOAD " CONTROL " status");
  EXPECT_TRUE(ended.by_itself(7)) << ended.status << ended.err;
  EXPECT_EQ(files().size(), 1U);
}

TEST_F(RecordControl, ProgramsThatCannotBeRecordedStillRunWithOneLine) {
  const std::string program = STATIC_PROGRAM;
  if (!program.empty()) {
    const Ended ended = record("", program);
    EXPECT_TRUE(ended.by_itself(5)) << ended.status;
    EXPECT_EQ(ended.out, "static\n");
    EXPECT_EQ(ended.err, "paceline record: " + program +
                             " is statically linked: the recorder cannot be loaded into it, so it runs unrecorded\n");
  }
  if (getuid() != 0) GTEST_SKIP() << "making a setuid program of another user needs root";
  const std::filesystem::path other = directory / "other";
  std::filesystem::copy_file(CONTROL, other);
  ASSERT_EQ(chown(other.c_str(), 65534, 65534), 0);
  ASSERT_EQ(chmod(other.c_str(), 04755), 0);
  const Ended ended = record("", other.string() + " status");
  EXPECT_TRUE(ended.by_itself(7)) << ended.status << ended.err;
  EXPECT_NE(ended.err.find("is setuid or setgid"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace paceline::test
