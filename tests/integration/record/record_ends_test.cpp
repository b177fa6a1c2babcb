// SPDX-License-Identifier: Apache-2.0
// However a program ends, its file is readable and contains the recorded events, and the recorder never harms the
// program.
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using format::DropCause;
using format::EventType;

class RecordEnds : public RecordTest {};

// Rank 1 counts its ranges in a file of its own until it is killed. The counted ranges must be in its trace.
TEST_F(RecordEnds, AKilledRankLeavesEveryRangeThatEnded) {
  std::mt19937 random(std::random_device{}());
  for (int attempt = 0; attempt < 3; ++attempt) {
    std::filesystem::remove_all(directory / "run");
    const std::filesystem::path progress = directory / "progress";
    std::filesystem::remove(progress);
    Ended ended;
    std::thread job([&] { ended = run(mpirun() + "-n 2 " + recorded() + WAYS " kill " + progress.string()); });
    std::uint64_t counted[2] = {};
    const auto read_progress = [&] {
      std::ifstream in(progress, std::ios::binary);
      in.read(reinterpret_cast<char*>(counted), sizeof counted);
    };
    for (int wait = 0; wait < 3000 && counted[0] == 0; ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      read_progress();
    }
    ASSERT_NE(counted[0], 0u);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 300'000));
    kill(static_cast<pid_t>(counted[0]), SIGKILL);
    job.join();
    read_progress();
    EXPECT_FALSE(ended.by_itself(0));
    const std::vector<RecordedFile> ranks = files();
    ASSERT_EQ(ranks.size(), 2u);
    for (const RecordedFile& file : ranks) {
      EXPECT_FALSE(file.file.damaged) << file.file.damage;
      EXPECT_EQ(file.dropped(), 0u);
    }
    const std::uint64_t pops = ranks[1].of(EventType::pop).size();
    EXPECT_GE(pops, counted[1] + 10);
    EXPECT_LE(pops, counted[1] + 11);
    EXPECT_EQ(ranks[1].file.header.closed, 0u);
    EXPECT_EQ(ranks[0].of(EventType::pop).size(), 10u);
  }
#ifdef PACELINE
  // Then mpirun ended rank 0.
  const Ended info = run(PACELINE " info run");
  EXPECT_NE(info.out.find("Ranks 0 and 1 did not end by themselves"), std::string::npos) << info.out;
  const Ended report = run(PACELINE " report --format json run");
  EXPECT_NE(report.out.find("Ranks 0 and 1 did not end by themselves"), std::string::npos) << report.out;
#endif
}

TEST_F(RecordEnds, SignalsAndExitsEndTheProgramAsBefore) {
  struct Way {
    const char* mode;
    int shell_status;
  };
  for (const Way& way :
       {Way{"abort", 128 + SIGABRT}, Way{"crash", 128 + SIGSEGV}, Way{"quick_exit", 5}, Way{"_exit", 7}}) {
    std::filesystem::remove_all(directory / "run");
    const Ended ended = run(recorded() + WAYS " " + way.mode + " 30000; exit $?");
    EXPECT_TRUE(ended.by_itself(way.shell_status)) << way.mode << ": " << ended.status << ended.err;
    EXPECT_EQ(ended.recorder_lines(), 0) << ended.err;
    const RecordedFile file = only_file();
    EXPECT_FALSE(file.file.damaged) << file.file.damage;
    EXPECT_EQ(file.of(EventType::push).size(), 30'000u) << way.mode;
    EXPECT_EQ(file.of(EventType::pop).size(), 30'000u) << way.mode;
    // A process that a signal ends keeps its live area.
    const bool closes = way.shell_status < 128;
    EXPECT_EQ(file.file.header.closed, closes ? 1u : 0u) << way.mode;
    EXPECT_EQ(file.file.header.live_bytes == 0, closes) << way.mode;
    EXPECT_EQ(file.of(EventType::process_end).size(), closes ? 1u : 0u) << way.mode;
  }
#ifdef PACELINE
  const Ended report = run(PACELINE " report run");  // of the last way, _exit
  EXPECT_NE(report.out.find("Rank 0 ended with status 7"), std::string::npos) << report.out;
#endif
}

// While one thread ends the process and runs its exit handlers, another thread goes on recording.
TEST_F(RecordEnds, AThreadThatExitsEndsTheProgramAsBefore) {
  const Ended ended = run(recorded() + WAYS " thread_exit 3000; exit $?");
  EXPECT_TRUE(ended.by_itself(6)) << ended.status << ended.err;
  EXPECT_EQ(ended.recorder_lines(), 0) << ended.err;
  const RecordedFile file = only_file();
  EXPECT_FALSE(file.file.damaged) << file.file.damage;
  EXPECT_EQ(file.file.header.closed, 1u);
  EXPECT_EQ(file.of(EventType::process_end).size(), 1u);
  EXPECT_GE(file.of(EventType::pop).size(), 4000u);
#ifdef PACELINE
  const Ended info = run(PACELINE " info run");
  EXPECT_NE(info.out.find("Rank 0 ended with status 6, which means that the program failed."), std::string::npos)
      << info.out;
#endif
}

#ifdef PACELINE
TEST_F(RecordEnds, ARunThatFailedIsLeftOutOfScaling) {
  run(recorded() + WAYS " return 100");
  std::filesystem::rename(directory / "run", directory / "one");
  run(recorded() + WAYS " _exit 100");
  const Ended report = run(PACELINE " report one run");
  EXPECT_TRUE(report.by_itself(0)) << report.err;
  EXPECT_NE(report.out.find("run: Rank 0 ended with status 7"), std::string::npos) << report.out;
  EXPECT_NE(report.out.find("The run is left out of"), std::string::npos) << report.out;
  EXPECT_NE(report.out.find("all runs have 1 rank"), std::string::npos) << report.out;
}
#endif

TEST_F(RecordEnds, AProgramThatReplacesItselfLeavesTwoFiles) {
  const Ended ended = run(recorded() + WAYS " exec 300");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.out, "done\n");
  const std::vector<RecordedFile> both = files();
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].file.header.pid, both[1].file.header.pid);
  const bool swapped = both[0].file.path.string().ends_with("-2.pace");
  EXPECT_TRUE(both[swapped ? 0 : 1].file.path.string().ends_with("-2.pace"));
  EXPECT_EQ(both[swapped ? 1 : 0].of(EventType::push).size(), 300u);
  EXPECT_EQ(both[swapped ? 0 : 1].of(EventType::push).size(), 500u);
  for (const RecordedFile& file : both) {
    EXPECT_EQ(file.file.header.closed, 1u);
    struct stat status {};
    ASSERT_EQ(stat(file.file.path.c_str(), &status), 0);
    EXPECT_LT(status.st_blocks * 512, 1 << 20) << "the live area is still on the disk";
  }
#ifdef PACELINE
  const Ended info = run(PACELINE " info run");
  EXPECT_EQ(info.out.find("did not end"), std::string::npos) << info.out;
  const Ended csv = run(PACELINE " export --to csv -o slices.csv run && grep -c \",main thread.*range\" slices.csv");
  EXPECT_EQ(csv.out, "800\n") << csv.err;  // one rank, one main thread
#endif
}

TEST_F(RecordEnds, AProgramThatCannotReplaceItselfIsStillRecorded) {
  const Ended ended = run(recorded() + WAYS " exec_fails 300");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.recorder_lines(), 0) << ended.err;
  const RecordedFile file = only_file();
  EXPECT_EQ(file.of(EventType::push).size(), 500u);
  EXPECT_EQ(file.dropped(), 0u);
  EXPECT_EQ(file.file.header.closed, 1u);
}

TEST_F(RecordEnds, AChildOfVforkLeavesItsParentsFileAlone) {
  const Ended ended = run(recorded() + WAYS " vfork 300");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const RecordedFile file = only_file();
  EXPECT_EQ(file.of(EventType::push).size(), 500u);
  EXPECT_EQ(file.file.header.closed, 1u);
}

TEST_F(RecordEnds, AnExcludedChildOfForkIsNotRecorded) {
  const Ended ended = run(recorded("PACELINE_CHILDREN=0") + WAYS " fork 300");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const RecordedFile file = only_file();
  EXPECT_EQ(file.file.header.closed, 1u);
  EXPECT_EQ(file.of(EventType::push).size(), 301u);
}

TEST_F(RecordEnds, AChildForkedWhileAnotherThreadStartsNvtxDoesNotHang) {
  for (int attempt = 0; attempt < 4; ++attempt) {
    const Ended ended = run(recorded("PACELINE_CHILDREN=0") + FORKS);
    EXPECT_TRUE(ended.by_itself(0)) << ended.err;
    EXPECT_EQ(ended.out, "0\n");
  }
}

TEST_F(RecordEnds, AReplacedClockIsNotUsed) {
  if (!run("faketime -f -60y true").by_itself(0)) GTEST_SKIP() << "faketime is not installed";
  const Ended ended = run(recorded() + "faketime -f -60y " WAYS " return 300");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const RecordedFile file = only_file();
  const double age_s =
      1e-9 * static_cast<double>(file.file.header.start_utc_ns - file.file.header.process_start_utc_ns);
  EXPECT_GT(age_s, -1.0);
  EXPECT_LT(age_s, 60.0);
  const double now_s = static_cast<double>(time(nullptr));
  EXPECT_NEAR(1e-9 * static_cast<double>(file.file.header.start_utc_ns), now_s, 600.0);
  for (const RecordedEvent& pair : file.of(EventType::clock_pair)) {
    EXPECT_NEAR(1e-9 * static_cast<double>(pair.head.low), now_s, 600.0);
  }
}

TEST_F(RecordEnds, ProgramsThatEmitNothingLeaveNoFile) {
  const Ended ended = run(recorded() + "sh -c \"ls / | sort >list; " WAYS " nothing; echo done\"");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.out, "done\n");
  EXPECT_FALSE(std::filesystem::exists(directory / "run"));
}

TEST_F(RecordEnds, ADirectoryThatCannotBeWrittenCostsOneLine) {
  const Ended ended = run(recorded("PACELINE_OUTPUT=/proc/none") + WAYS " return");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.out, "done\n");
  EXPECT_EQ(ended.recorder_lines(), 1) << ended.err;
  EXPECT_NE(ended.err.find("/proc/none"), std::string::npos) << ended.err;
}

TEST_F(RecordEnds, WhereNoFileMayBeWrittenALineSaysSo) {
  const Ended ended = run("( ulimit -f 0; " PACELINE " record -o run -- /bin/true; echo status $? ) 2>&1 | cat");
  EXPECT_NE(ended.out.find("File too large"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("status 125"), std::string::npos) << ended.out;
}

TEST_F(RecordEnds, ALimitOnFileSizesCostsOneLine) {
  const Ended ended = run("ulimit -f 1000; " + recorded() + WAYS " return");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.out, "done\n");
  EXPECT_EQ(ended.recorder_lines(), 1) << ended.err;
  EXPECT_TRUE(files().empty());
}

// The limit is above the file's first size, so it is reached later, in the middle.
TEST_F(RecordEnds, ALimitOnFileSizesThatIsReachedLaterIsReportedWithItsCost) {
  const Ended ended = run("ulimit -f 8192; " + recorded("PACELINE_BUFFER_BYTES=2097152") + WAYS " steady 600000");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.out, "done\n");
  EXPECT_EQ(ended.recorder_lines(), 2) << ended.err;
  EXPECT_NE(ended.err.find("events are lost"), std::string::npos) << ended.err;
  const RecordedFile file = only_file();
  EXPECT_FALSE(file.file.damaged) << file.file.damage;
  EXPECT_GT(file.file.header.dropped[static_cast<int>(DropCause::disk)], 0u);
  EXPECT_GT(file.of(EventType::push_payload).size(), 10'000u);
}

// The buffer is a hole in the file until it is used. The file of a killed process keeps its buffer.
TEST_F(RecordEnds, AShortRecordingTakesLittleSpaceOnTheDisk) {
  const Ended ended = run(recorded() + WAYS " abort 60");
  EXPECT_FALSE(ended.by_itself(0));
  const RecordedFile file = only_file();
  EXPECT_EQ(file.of(EventType::push).size(), 60u);
  struct stat status {};
  ASSERT_EQ(stat(file.file.path.c_str(), &status), 0);
  EXPECT_GT(status.st_size, 32'000'000);
  EXPECT_LT(status.st_blocks * 512, 2'000'000);
}

TEST_F(RecordEnds, AFullDiskIsReportedWithItsCost) {
  const std::filesystem::path small = directory / "run";
  std::filesystem::create_directory(small);
  if (mount("tmpfs", small.c_str(), "tmpfs", 0, "size=3m") != 0) GTEST_SKIP() << "mounting a small disk needs root";
  // The second buffer is larger than the disk, so that its units get no space either.
  for (const char* buffer : {"PACELINE_BUFFER_BYTES=2097152", "PACELINE_BUFFER_BYTES=33554432"}) {
    for (const auto& entry : std::filesystem::directory_iterator(small)) std::filesystem::remove_all(entry);
    const Ended ended = run(recorded(buffer) + WAYS " steady 600000");
    EXPECT_TRUE(ended.by_itself(0)) << ended.err;
    EXPECT_EQ(ended.out, "done\n");
    EXPECT_EQ(ended.recorder_lines(), 2) << ended.err;
    EXPECT_NE(ended.err.find("No space left"), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find(": disk\n"), std::string::npos) << ended.err;
    const RecordedFile file = only_file();
    EXPECT_FALSE(file.file.damaged) << file.file.damage;
    const std::uint64_t dropped = file.file.header.dropped[static_cast<int>(DropCause::disk)];
    EXPECT_GT(dropped, 0u);
    EXPECT_GT(file.of(EventType::push_payload).size(), 10'000u);
    std::uint64_t located = 0;
    for (const format::LostStretch& lost : file.file.lost) {
      if (lost.cause == static_cast<std::uint32_t>(DropCause::disk)) located += lost.events;
    }
    EXPECT_EQ(located, dropped);
  }
  umount(small.c_str());
}

TEST_F(RecordEnds, ADiskThatIsFullAtTheStartCostsOneLine) {
  const std::filesystem::path small = directory / "run";
  std::filesystem::create_directory(small);
  if (mount("tmpfs", small.c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "mounting a small disk needs root";
  const Ended ended = run(recorded() + WAYS " return");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.out, "done\n");
  EXPECT_EQ(ended.recorder_lines(), 1) << ended.err;
  EXPECT_TRUE(std::filesystem::is_empty(small));
  umount(small.c_str());
}

}  // namespace
}  // namespace paceline::test
