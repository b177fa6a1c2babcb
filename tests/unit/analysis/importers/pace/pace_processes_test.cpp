// SPDX-License-Identifier: Apache-2.0
// Which process belongs to which rank, by what the files say of their ancestors.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/importers/pace/processes.h"
#include "tests/unit/analysis/imported.h"

namespace paceline::analysis {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::import;
using ::testing::IsEmpty;
using testing::names_of;
using testing::PaceFile;
using testing::track_labelled;

// A process that records one range, from `begin_ms` after the start of the run on.
PaceFile process(int rank, std::uint32_t pid, std::uint64_t start, int begin_ms, const std::string& range,
                 std::vector<std::string> ancestors, int forked = 0) {
  PaceFile made(rank, rank < 0 ? -1 : 4);
  made.file.path = range + ".pace";
  made.file.header.pid = pid;
  made.file.process_start = start;
  made.file.ancestors = std::move(ancestors);
  made.file.forked = forked;
  const std::uint64_t begin = static_cast<std::uint64_t>(begin_ms) * 1'000'000;
  made.file.header.start_ticks += begin;
  made.file.header.start_utc_ns += static_cast<std::int64_t>(begin);
  made.file.tracks.clear();
  made.use_thread(pid);
  made.push(100, format::pack_scope(made.name(range), 0, 0));
  made.pop(1'000'000);
  return made;
}

constexpr char shell[] = "50:900";

TEST(PaceProcesses, AForkedWorkerThatRecordsFirstBelongsToItsParentsRank) {
  const PaceFile trainer = process(1, 200, 1000, 50, "train", {shell});
  PaceFile worker = process(1, 300, 1001, 10, "fetch", {"200:1000", shell}, 1);
  for (int more = 0; more < 9; ++more) {
    worker.push(2'000'000 + more, format::pack_scope(1, 0, 0));
    worker.pop(2'000'001 + more);
  }
  const Trace trace = import(worker, trainer);
  ASSERT_EQ(trace.ranks.size(), 1U);
  EXPECT_EQ(trace.ranks[0].rank, 1);
  EXPECT_EQ(trace.ranks[0].pid, 200U);
  EXPECT_THAT(trace.notes, IsEmpty());
  ASSERT_EQ(trace.ranks[0].tracks.size(), 2U);
  EXPECT_TRUE(trace.ranks[0].tracks[0].main);
  EXPECT_THAT(names_of(trace, trace.ranks[0].tracks[0]), ElementsAre("train"));
  EXPECT_EQ(track_labelled(trace.ranks[0], "process 300: main thread").slices.size(), 10U);
}

TEST(PaceProcesses, TheCountersOfTheRankComeBeforeThoseOfItsWorkers) {
  PaceFile trainer = process(0, 200, 1000, 50, "train", {shell});
  PaceFile worker = process(0, 300, 1001, 60, "fetch", {"200:1000", shell}, 1);
  for (PaceFile* file : {&worker, &trainer}) {
    file->counter(3, format::CounterKind::sum, "CPU time", "µs", "");
    file->sample(1000, 3, 5);
    file->sample(2000, 3, 9);
  }
  const Trace trace = import(worker, trainer);
  ASSERT_EQ(trace.ranks.size(), 1U);
  std::vector<std::string> counters;
  for (const Track& track : trace.ranks[0].tracks) {
    if (track.kind == TrackKind::counter) counters.push_back(track.label);
  }
  EXPECT_THAT(counters, ElementsAre("CPU time", "process 300: CPU time"));
}

// In containers each rank may be process 1, and ranks that start together have one start.
TEST(PaceProcesses, RanksOfOneIdAndStartAreDifferentProcesses) {
  for (const bool older : {false, true}) {  // older files do not name the PID namespace
    std::vector<PaceFile> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      ranks.push_back(process(rank, 1, 1000, rank, "rank " + std::to_string(rank), {}));
      if (!older) ranks.back().file.pid_namespace = static_cast<std::uint64_t>(4026532000 + rank);
    }
    EXPECT_THAT(import(ranks[0], ranks[1], ranks[2], ranks[3]).ranks, ::testing::SizeIs(4)) << older;
  }
}

TEST(PaceProcesses, ProcessesWithoutARankInDifferentNamespacesAreDifferent) {
  PaceFile first = process(-1, 1, 1000, 0, "first", {}), second = process(-1, 1, 1000, 1, "second", {});
  first.file.pid_namespace = 10;
  second.file.pid_namespace = 11;
  PaceFile worker = process(-1, 7, 1001, 2, "worker", {"1:1000"}, 1);
  worker.file.pid_namespace = 11;
  PaceFile contained = process(-1, 1, 1002, 3, "contained", {"7:1001:11"}, 1);  // forked into a third namespace
  contained.file.pid_namespace = 12;
  const Trace trace = import(first, second, worker, contained);
  ASSERT_THAT(trace.ranks, ::testing::SizeIs(2));
  EXPECT_EQ(trace.ranks[0].path, "first.pace");
  EXPECT_THAT(names_of(trace, track_labelled(trace.ranks[1], "process 7: main thread")), ElementsAre("worker"));
  EXPECT_THAT(names_of(trace, track_labelled(trace.ranks[1], "process 1: main thread")), ElementsAre("contained"));
}

TEST(PaceProcesses, WorkersWithoutARankBelongToTheProcessThatTheyDescendFrom) {
  const Trace trace =
      import(process(-1, 300, 1001, 10, "spawned", {"200:1000", shell}),
             process(-1, 301, 1002, 11, "nested", {"300:1001", "200:1000", shell}, 1),
             process(-1, 200, 1000, 50, "train", {shell}), process(-1, 400, 1100, 50, "another", {shell}));
  ASSERT_EQ(trace.ranks.size(), 2U);
  EXPECT_EQ(trace.ranks[0].pid, 200U);
  EXPECT_EQ(trace.ranks[0].tracks.size(), 3U);
  EXPECT_EQ(trace.ranks[1].pid, 400U);
}

// `mpirun -n 2` with another process of each rank, `begin_ms` after the first start.
std::vector<PaceFile> launched(const std::string& launch, std::uint32_t pid, int begin_ms) {
  std::vector<PaceFile> files;
  for (int rank = 0; rank < 2; ++rank) {
    const auto own = pid + static_cast<std::uint32_t>(rank);
    files.push_back(process(rank, own, own, begin_ms, fmt::format("{} {}", launch, rank), {shell}));
    files.back().file.launch = launch;
  }
  return files;
}

Trace import_both(std::vector<PaceFile> files, const std::vector<PaceFile>& more) {
  files.insert(files.end(), more.begin(), more.end());
  return import(files);
}

TEST(PaceProcesses, OfTwoLaunchesOfOneJobTheLastIsTaken) {
  const Trace trace = import_both(launched("second", 300, 500), launched("first", 200, 10));
  ASSERT_EQ(trace.ranks.size(), 2U);
  for (std::size_t r = 0; r < 2; ++r) {
    EXPECT_EQ(trace.ranks[r].pid, 300U + r);
    EXPECT_EQ(trace.ranks[r].tracks.size(), 1U);
  }
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_THAT(trace.notes[0], HasSubstr("first 0.pace and 1 other file left out: an earlier mpirun"));
}

TEST(PaceProcesses, AProgramAfterExecAndLaunchesAtOneTimeStayTogether) {
  EXPECT_THAT(import_both(launched("one", 200, 10), launched("one", 200, 500)).notes, IsEmpty()) << "after exec";
  // A rank starts mpirun itself, whose ranks end before it does.
  std::vector<PaceFile> outer = launched("outer", 200, 10);
  for (PaceFile& file : outer) {
    file.push(900'000'000, format::pack_scope(1, 0, 0));
    file.pop(900'000'001);
  }
  const Trace nested = import_both(outer, launched("inner", 300, 500));
  ASSERT_EQ(nested.ranks.size(), 2U);
  EXPECT_EQ(nested.ranks[0].pid, 200U);
  // Two mpirun with different ranks are one run, if the user gives both the same job.
  std::vector<PaceFile> others = launched("second", 300, 500);
  for (PaceFile& file : others) file.file.header.rank += 2;
  EXPECT_EQ(import_both(launched("first", 200, 10), others).ranks.size(), 4U);
}

// As torchrun, which asks for GPUs and so has a file.
TEST(PaceProcesses, AProcessThatStartedTheRanksIsNone) {
  const Trace trace = import(
      process(-1, 200, 1000, 0, "launcher", {shell}), process(-1, 250, 1001, 5, "agent", {"200:1000", shell}, 1),
      process(0, 300, 1001, 10, "zero", {"200:1000", shell}), process(1, 301, 1001, 10, "one", {"200:1000", shell}));
  ASSERT_EQ(trace.ranks.size(), 2U);
  EXPECT_EQ(trace.ranks[0].pid, 300U);
  EXPECT_EQ(trace.ranks[1].pid, 301U);
  EXPECT_THAT(trace.notes, ElementsAre(AllOf(HasSubstr("launcher.pace and 1 of its child processes left out"),
                                             HasSubstr("this process started the ranks and is none itself"))));
}

TEST(PaceProcesses, AProcessWithARankOfItsOwnIsNoChild) {
  const Trace trace =
      import(process(0, 200, 1000, 0, "zero", {shell}), process(1, 300, 1001, 10, "one", {"200:1000", shell}));
  EXPECT_EQ(trace.ranks.size(), 2U);
  EXPECT_THAT(trace.notes, IsEmpty());
}

TEST(PaceProcesses, AReusedProcessIdIsAnotherProcess) {
  const Trace trace =
      import(process(-1, 200, 1000, 0, "earlier", {shell}), process(-1, 300, 9001, 10, "later", {"200:9000", shell}));
  EXPECT_EQ(trace.ranks.size(), 2U);
}

TEST(PaceProcesses, WorkersOfATrainerThatWasNotRecordedAreOneRanksHelpers) {
  for (const int rank : {-1, 2}) {
    const Trace trace = import(process(rank, 300, 1001, 10, "first", {"200:1000", shell}, 1),
                               process(rank, 301, 1002, 11, "second", {"300:1001", "200:1000", shell}, 2));
    ASSERT_EQ(trace.ranks.size(), 1U);
    EXPECT_EQ(trace.ranks[0].rank, rank < 0 ? 0 : 2);
    EXPECT_EQ(main_track(trace.ranks[0]), nullptr);
    EXPECT_EQ(trace.ranks[0].tracks.size(), 2U);
    ASSERT_EQ(trace.notes.size(), 1U);
    EXPECT_THAT(trace.notes[0], HasSubstr("was not recorded"));
  }
}

// torch.multiprocessing.spawn starts ranks from a program that makes no event. The recorder states their ranks.
TEST(PaceProcesses, SpawnedRanksOfATrainerThatWasNotRecordedAreRanks) {
  std::vector<PaceFile> files;
  for (const int rank : {0, 1}) {
    const std::uint32_t pid = 300 + static_cast<std::uint32_t>(rank);
    PaceFile& file = files.emplace_back(process(rank, pid, 1001, 10, "spawned", {"200:1000", shell}, 1));
    file.file.header.rank = -1;
    file.setting("rank", std::to_string(rank));
    file.setting("world_size", "2");
  }
  const Trace trace = import(files[0], files[1]);
  ASSERT_EQ(trace.ranks.size(), 2U);
  for (const Rank& rank : trace.ranks) EXPECT_NE(main_track(rank), nullptr);
}

// The thread that trains, not the first one, is the main thread.
TEST(PaceProcesses, TheTrainingThreadIsTheMainOne) {
  PaceFile file = process(0, 200, 1000, 0, "first", {shell});
  file.use_thread(201);
  file.push(100, format::pack_scope(file.name("trains"), 0, 0));
  file.pop(1'000'000);
  file.setting("training_thread", "201");
  const Trace trace = import(file);
  ASSERT_EQ(trace.ranks.size(), 1U);
  const Track* main = main_track(trace.ranks[0]);
  ASSERT_NE(main, nullptr);
  EXPECT_THAT(names_of(trace, *main), ElementsAre("trains"));
  EXPECT_FALSE(trace.ranks[0].facts.contains("training_thread"));
}

TEST(PaceProcesses, AProcessThatReplacedItsProgramIsOneRankWithOneMainThread) {
  PaceFile first = process(-1, 200, 1000, 0, "first", {shell});
  first.file.header.closed = 0;
  first.push(1'500'000, format::pack_scope(1, 0, 0));  // open when the program is replaced
  const Trace trace = import(process(-1, 200, 1000, 10, "second", {shell}), first);
  ASSERT_EQ(trace.ranks.size(), 1U);
  const Rank& rank = trace.ranks[0];
  EXPECT_TRUE(rank.ended);
  ASSERT_EQ(rank.tracks.size(), 1U);
  EXPECT_THAT(names_of(trace, rank.tracks[0]), ElementsAre("first", "first", "second"));
  EXPECT_EQ(rank.tracks[0].slices.end_ns(1), rank.tracks[0].slices.start_ns[1]) << "it ends with its program";
}

TEST(PaceProcesses, ASecondRecorderInAProcessMakesHelperThreads) {
  const Trace trace =
      import(process(-1, 200, 1000, 0, "program", {shell}), process(-1, 200, 1000, 0, "namespace", {shell}));
  ASSERT_EQ(trace.ranks.size(), 1U);
  ASSERT_EQ(trace.ranks[0].tracks.size(), 2U);
  EXPECT_FALSE(trace.ranks[0].tracks[1].main);
}

// A script that runs one program after another, and one beside them.
TEST(PaceProcesses, TheProgramsOfARanksScriptFollowEachOther) {
  const Trace trace = import(process(3, 200, 1000, 0, "prepare", {shell}), process(3, 201, 1200, 20, "train", {shell}),
                             process(3, 202, 1200, 20, "monitor", {shell}));
  ASSERT_EQ(trace.ranks.size(), 1U);
  ASSERT_EQ(trace.ranks[0].tracks.size(), 2U);
  EXPECT_THAT(names_of(trace, trace.ranks[0].tracks[0]), ElementsAre("prepare", "train"));
}

// The same without a rank. Ranks of one job would run at the same time.
TEST(PaceProcesses, TheProgramsOfAScriptAreOneRankAndProcessesAtOneTimeAreSeveral) {
  const PaceFile prepare = process(-1, 200, 1000, 0, "prepare", {shell});
  const PaceFile train = process(-1, 201, 1200, 20, "train", {shell});
  const Trace script = import(train, process(-1, 204, 1400, 40, "evaluate", {shell}), prepare);
  ASSERT_EQ(script.ranks.size(), 1U);
  EXPECT_EQ(script.ranks[0].rank, 0);
  ASSERT_EQ(script.ranks[0].tracks.size(), 1U);
  EXPECT_THAT(names_of(script, script.ranks[0].tracks[0]), ElementsAre("prepare", "train", "evaluate"));

  EXPECT_EQ(import(train, process(-1, 202, 1200, 20, "beside", {shell}), prepare).ranks.size(), 3U);
  EXPECT_EQ(import(prepare, process(-1, 201, 1200, 20, "of another", {"51:900"})).ranks.size(), 2U);
}

TEST(PaceProcesses, OfARankThatWasStartedAgainElsewhereTheLastIsTaken) {
  PaceFile again = process(0, 300, 1001, 10, "again", {shell});
  again.file.host = "other";
  const Trace trace = import(again, process(0, 200, 1000, 0, "first", {shell}));
  ASSERT_EQ(trace.ranks.size(), 1U);
  EXPECT_EQ(trace.ranks[0].path, "again.pace");
  EXPECT_THAT(trace.notes, ElementsAre(HasSubstr("first.pace left out: rank 0 was started again on other")));
}

TEST(PaceProcesses, AnImplausibleStartOfAProcessIsNotBelieved) {
  PaceFile file = process(0, 200, 1000, 0, "range", {});
  for (const std::int64_t age_s : {-10'000'000, 60 * 365 * 86'400}) {
    file.file.header.process_start_utc_ns = file.file.header.start_utc_ns - age_s * 1'000'000'000;
    EXPECT_EQ(plausible_process_start_utc_ns(file.file), 0);
    EXPECT_LT(import(file).ranks[0].end_ns, 1'000'000'000);
  }
  file.file.header.process_start_utc_ns = file.file.header.start_utc_ns - 3'000'000'000;
  EXPECT_NE(plausible_process_start_utc_ns(file.file), 0);
}

}  // namespace
}  // namespace paceline::analysis
