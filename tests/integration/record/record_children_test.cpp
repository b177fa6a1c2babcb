// SPDX-License-Identifier: Apache-2.0
// Which processes of a job are recorded: children, workers with a rank of their own, programs after exec.
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using format::EventType;

class RecordChildren : public RecordTest {
 protected:
  static std::string own_name(const RecordedFile& file) {
    return std::to_string(file.file.header.pid) + ":" + std::to_string(file.file.process_start);
  }
  // Children last.
  std::vector<RecordedFile> recorded_files(const std::string& options, const std::string& command) {
    std::filesystem::remove_all(directory / "run");
    const Ended ended = record(options, command);
    EXPECT_TRUE(ended.by_itself(0)) << ended.status << ended.err;
    EXPECT_EQ(ended.recorder_lines(), 0) << ended.err;
    std::vector<RecordedFile> all = files();
    for (const RecordedFile& file : all) EXPECT_FALSE(file.file.damaged) << file.file.damage;
    std::ranges::stable_sort(all, {}, [](const RecordedFile& file) { return !file.file.parent.empty(); });
    return all;
  }
};

TEST_F(RecordChildren, AForkedChildHasAFileOfItsOwn) {
  const auto alone = recorded_files("--no-children", CONTROL " fork");
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].of(EventType::push).size(), 6u);
  const auto both = recorded_files("", CONTROL " fork");
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].named(EventType::push, "parent").size(), 6u);
  EXPECT_EQ(both[0].of(EventType::push).size(), 6u);
  EXPECT_EQ(both[0].file.header.closed, 1u);
  EXPECT_EQ(both[1].file.parent, std::to_string(both[0].file.header.pid));
  ASSERT_FALSE(both[1].file.ancestors.empty());
  EXPECT_EQ(both[1].file.ancestors[0], own_name(both[0]));
  EXPECT_EQ(both[1].file.forked, 1);
  // Handles of the parent stay valid in the child.
  const auto ranges = both[1].named(EventType::push, "registered before");
  ASSERT_EQ(ranges.size(), 9u);
  EXPECT_EQ(ranges[0].domain, "kept");
  EXPECT_EQ(both[1].of(EventType::pop).size(), 9u);
  EXPECT_EQ(both[1].file.header.closed, 1u);
  const Ended csv = run(PACELINE " export --to csv -o slices.csv run && grep -c \"process " +
                        std::to_string(both[1].file.header.pid) + ": main thread\" slices.csv");
  EXPECT_EQ(csv.out, "9\n") << csv.err;  // threads of the parent's rank
}

TEST_F(RecordChildren, AChildThatRunsAnotherProgramIsRecordedWithChildren) {
  std::filesystem::copy_file(CONTROL, directory / "other");
  const std::string command = CONTROL " fork-exec " + (directory / "other").string();
  ASSERT_EQ(recorded_files("", command).size(), 1u);
  const auto both = recorded_files("--children", command);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].named(EventType::push, "parent").size(), 6u);
  EXPECT_EQ(both[1].named(EventType::push, "successor").size(), 7u);
  EXPECT_EQ(both[1].file.parent, std::to_string(both[0].file.header.pid));
  EXPECT_EQ(both[1].file.forked, 0);
}

TEST_F(RecordChildren, AChildThatRunsTheSameProgramIsAWorker) {
  ASSERT_EQ(recorded_files("--no-children", CONTROL " fork-exec").size(), 1u);
  EXPECT_EQ(recorded_files("", CONTROL " fork-exec").size(), 2u);
}

TEST_F(RecordChildren, AWorkerWithARankOfItsOwnIsRecordedAnyway) {
  const auto both = recorded_files("", CONTROL " worker");
  ASSERT_EQ(both.size(), 2u);
  const bool swapped = both[0].file.header.rank == 1;
  EXPECT_EQ(both[swapped ? 0 : 1].file.header.rank, 1);
  EXPECT_EQ(both[swapped ? 0 : 1].file.header.world_size, 2);
  EXPECT_EQ(both[swapped ? 0 : 1].named(EventType::push, "successor").size(), 7u);
  EXPECT_EQ(both[swapped ? 0 : 1].file.parent, "");
}

TEST_F(RecordChildren, AProgramAfterExecHasASuffixAndTheFirstFileStaysWhole) {
  const auto both = recorded_files("", CONTROL " exec");
  ASSERT_EQ(both.size(), 2u);
  for (const RecordedFile& file : both) {
    const bool successor = file.file.path.string().ends_with("-2.pace");
    EXPECT_EQ(file.named(EventType::push, successor ? "successor" : "predecessor").size(), successor ? 7u : 5u);
  }
  EXPECT_EQ(both[0].file.header.pid, both[1].file.header.pid);
}

// The recorder of the parent gives the empty part of their buffers back to the disk.
TEST_F(RecordChildren, WorkersThatASignalEndsTakeLittleDiskSpace) {
  const auto all = recorded_files("", CONTROL " workers");
  ASSERT_EQ(all.size(), 3u);
  for (int worker = 1; worker <= 2; ++worker) {
    EXPECT_EQ(all[worker].named(EventType::push, "worker").size(), 5000u);
    EXPECT_EQ(all[worker].of(EventType::pop).size(), 5000u);
    EXPECT_EQ(all[worker].file.header.closed, 0u);
    struct stat status {};
    ASSERT_EQ(stat(all[worker].file.path.c_str(), &status), 0);
    EXPECT_GT(status.st_size, 4 << 20);
    EXPECT_LT(status.st_blocks * 512, 1 << 20);
  }
}

// A recorder in each namespace would use up the thread-local storage that the C library keeps for them.
TEST_F(RecordChildren, LibrariesInNamespacesOfTheirOwnAreRecordedInOneFile) {
  const auto all = recorded_files("", CONTROL " namespaces " RANGES_LIBRARY " 11");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].named(EventType::push, "iteration").size(), 11u);
  EXPECT_EQ(all[0].named(EventType::push, "inside").size(), 66u);
  EXPECT_EQ(all[0].of(EventType::pop).size(), 77u);
  // Without LD_PRELOAD, too, but then the program's calls of MPI are not recorded.
  std::filesystem::remove_all(directory / "run");
  const Ended late = record("", "env -u LD_PRELOAD " CONTROL " namespaces " RANGES_LIBRARY " 3");
  EXPECT_TRUE(late.by_itself(0)) << late.err;
  EXPECT_EQ(late.recorder_lines(), 1) << late.err;
  EXPECT_NE(late.err.find("LD_PRELOAD was lost"), std::string::npos) << late.err;
  EXPECT_EQ(only_file().named(EventType::push, "inside").size(), 18u);
}

TEST_F(RecordChildren, MpiInANamespaceOfItsOwnIsNotRecordedAndNamedOnce) {
  const Ended ended = record("", CONTROL " namespaces " RANGES_MPI_LIBRARY " 2");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.recorder_lines(), 1) << ended.err;
  EXPECT_NE(ended.err.find("its MPI calls are not recorded"), std::string::npos) << ended.err;
  EXPECT_EQ(only_file().named(EventType::push, "inside").size(), 12u);
  EXPECT_TRUE(only_file().of(EventType::mpi_begin).empty());
}

TEST_F(RecordChildren, PythonsWorkersAreRecorded) {
  for (const std::string way : {"fork", "spawn"}) {
    const std::string script = "/usr/bin/python3 " SCRIPTS "/processes.py " RANGES_LIBRARY " " + way;
    const auto all = recorded_files("", script);
    ASSERT_EQ(all.size(), 3u) << way;
    EXPECT_EQ(all[0].named(EventType::push, "parent").size(), 22u) << way;
    for (int worker = 1; worker <= 2; ++worker) {
      EXPECT_EQ(all[worker].named(EventType::push, "worker").size(), 5u) << way;
      EXPECT_EQ(all[worker].file.parent, std::to_string(all[0].file.header.pid)) << way;
      EXPECT_EQ(all[worker].file.header.closed, 1u) << way;  // they end by os._exit
    }
  }
}

// Workers that start before their trainer's first range, and record more than it does.
class RecordLoaders : public RecordChildren {
 protected:
  std::string trainer(const std::string& method, const std::string& order) {
    return "/usr/bin/python3 " SCRIPTS "/loader.py " RANGES_LIBRARY " " + method + " " + order;
  }
  nlohmann::json info() {
    const Ended ended = run(PACELINE " info --format json run");
    EXPECT_TRUE(ended.by_itself(0)) << ended.err;
    return nlohmann::json::parse(ended.out);
  }
  // Lines of the exported slices, by a word in them.
  int slices(const std::string& word) {
    return std::atoi(
        run(PACELINE " export --to csv -o slices.csv run && grep -c \"" + word + "\" slices.csv").out.c_str());
  }
};

TEST_F(RecordLoaders, BelongToTheTrainersRank) {
  for (const std::string method : {"fork", "spawn", "forkserver"}) {
    for (const std::string order : {"early", "late"}) {
      if (method == "forkserver" && order == "late") continue;  // as fork
      SCOPED_TRACE(method + " " + order);
      ASSERT_EQ(recorded_files("", trainer(method, order)).size(), 3u);
      const nlohmann::json ranks = info()["traces"];
      ASSERT_EQ(ranks.size(), 1u) << ranks.dump(1);
      EXPECT_EQ(slices("process [0-9]*: main thread.*fetch"), 80);
      EXPECT_EQ(slices(",main thread.*iteration"), 6);
      const Ended report = run(PACELINE " report --format json run");
      EXPECT_EQ(nlohmann::json::parse(report.out)["runs"][0]["iterations"]["count"], 6) << report.out;
    }
  }
}

TEST_F(RecordLoaders, AreHelperThreadsOfOneRankWithoutARecordedTrainer) {
  ASSERT_EQ(recorded_files("", trainer("fork", "never")).size(), 2u);
  EXPECT_EQ(info()["traces"].size(), 1u);
  EXPECT_EQ(slices("process [0-9]*: main thread.*fetch"), 80);
}

TEST_F(RecordLoaders, BelongToTheRankWhoseVariablesTheyInherit) {
  for (const std::string order : {"early", "late"}) {
    SCOPED_TRACE(order);
    const auto all = recorded_files("", "/usr/bin/python3 " SCRIPTS "/launcher.py 2 " + trainer("fork", order));
    ASSERT_EQ(all.size(), 6u);
    const nlohmann::json ranks = info()["traces"];
    ASSERT_EQ(ranks.size(), 2u) << ranks.dump(1);
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(ranks[rank]["rank"], rank);
      EXPECT_EQ(ranks[rank]["events"]["nvtx"], 86);
      EXPECT_EQ(ranks[rank]["ended"], true);
    }
    EXPECT_EQ(slices(",main thread.*iteration"), 12);
  }
}

}  // namespace
}  // namespace paceline::test
