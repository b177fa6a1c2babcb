// SPDX-License-Identifier: Apache-2.0
// Ranks in PID namespaces of their own, as in containers: each has process id 1, with and without a /proc of its own.
#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "profiler/format/liveness.h"
#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

namespace fs = std::filesystem;
using format::EventType;

constexpr char with_own_proc[] = "unshare -p -f --mount-proc ", with_proc_of_the_host[] = "unshare -p -f ";

class RecordContainer : public RecordTest {
 protected:
  void SetUp() override {
    RecordTest::SetUp();
    // The ranks have no launcher here, but its variables.
    if (std::system("unshare -p -f --mount-proc true 2>/dev/null") != 0) {
      GTEST_SKIP() << "unshare -p -f --mount-proc does not work here: it needs root and util-linux";
    }
  }

  // Runs four ranks at once, each in a namespace of its own.
  Ended run_ranks(const std::string& container, const std::string& command) const {
    return run("for rank in 0 1 2 3; do OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=4 " + recorded() + container +
               command + " & done; wait");
  }

  std::set<int> ranks_of_info() const {
    const Ended info = run(PACELINE " info --format json run");
    std::set<int> found;
    const auto json = nlohmann::json::parse(info.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << info.out << info.err;
    if (!json.is_object()) return found;
    for (const auto& rank : json["traces"]) {
      found.insert(rank["rank"].get<int>());
      EXPECT_LT(rank["span_ns"].get<std::int64_t>(), 120'000'000'000) << "a process of the host was taken for the rank";
    }
    return found;
  }

  std::string state_in_watch() const {
    const Ended watch = run(PACELINE " watch --once --json run");
    const auto json = nlohmann::json::parse(watch.out, nullptr, false);
    if (!json.is_object() || json["ranks"].empty()) return watch.out + watch.err;
    return json["ranks"][0]["state"].get<std::string>();
  }

  fs::path only_trace() const {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(directory / "run")) {
      if (entry.path().extension() == ".pace") found = entry.path();
    }
    return found;
  }
};

TEST_F(RecordContainer, RanksOfOneProcessIdAreFourProcesses) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    fs::remove_all(directory / "run");
    const Ended ended = run_ranks(with_own_proc, CONTROL " ranges");
    ASSERT_TRUE(ended.by_itself(0)) << ended.err;
    EXPECT_EQ(ranks_of_info(), (std::set<int>{0, 1, 2, 3})) << "in run " << repeat;
  }
  std::set<std::uint64_t> namespaces;
  for (const RecordedFile& file : files()) {
    EXPECT_EQ(file.file.header.pid, 1u);
    EXPECT_TRUE(file.file.ancestors.empty());
    namespaces.insert(file.file.pid_namespace);
  }
  EXPECT_EQ(namespaces.size(), 4u);
  EXPECT_FALSE(namespaces.contains(0));
}

// There /proc/1 is the host's first process, which began long ago.
TEST_F(RecordContainer, AProcOfTheHostShowsTheRankItself) {
  for (int repeat = 0; repeat < 5; ++repeat) {
    fs::remove_all(directory / "run");
    const Ended ended = run_ranks(with_proc_of_the_host, CONTROL " ranges");
    ASSERT_TRUE(ended.by_itself(0)) << ended.err;
    EXPECT_EQ(ranks_of_info(), (std::set<int>{0, 1, 2, 3})) << "in run " << repeat;
  }
  const std::vector<RecordedFile> all = files();
  ASSERT_EQ(all.size(), 4u);
  for (const RecordedFile& file : all) {
    EXPECT_EQ(file.file.header.pid, 1u);
    EXPECT_NE(file.file.process_start, 0u);
    EXPECT_TRUE(file.file.ancestors.empty());
  }
}

// Whether the first one still runs cannot be seen from the second container, so the traces decide.
TEST_F(RecordContainer, ARunThatRecordedNothingDoesNotHoldItsDirectory) {
  for (const std::string container : {with_own_proc, with_proc_of_the_host}) {
    fs::remove_all(directory / "run");
    for (int repeat = 0; repeat < 20; ++repeat) {
      const Ended ended = run(container + PACELINE " record -o run -- /bin/true");
      ASSERT_TRUE(ended.by_itself(0)) << container << repeat << ": " << ended.err;
    }
  }
}

// A worker names its parent by the id that the parent has inside.
TEST_F(RecordContainer, AForkedWorkerInsideBelongsToItsParent) {
  for (const char* container : {with_own_proc, with_proc_of_the_host}) {
    fs::remove_all(directory / "run");
    const Ended ended = run(recorded() + container + CONTROL " fork");
    ASSERT_TRUE(ended.by_itself(0)) << ended.err;
    std::vector<RecordedFile> all = files();
    ASSERT_EQ(all.size(), 2u) << container;
    std::ranges::sort(all, {}, [](const RecordedFile& file) { return file.file.header.pid; });
    ASSERT_FALSE(all[1].file.ancestors.empty());
    EXPECT_EQ(all[1].file.ancestors[0], "1:" + std::to_string(all[0].file.process_start));
    EXPECT_EQ(ranks_of_info().size(), 1u);
  }
}

TEST_F(RecordContainer, ARunningJobIsSeenFromOutsideAndAKilledOneToo) {
  for (const char* container : {with_own_proc, with_proc_of_the_host}) {
    fs::remove_all(directory / "run");
    const fs::path end = directory / "end", pid_file = directory / "pid";
    std::thread job([&] {
      run("echo $$ >pid; exec " PACELINE " record -o run -- " + std::string(container) +
          "--kill-child " CONTROL " quiet " + end.string() + " 2>job.txt");
    });
    wait_until([](const std::vector<RecordedFile>& all) { return all.size() == 1 && !all[0].events.empty(); });
    const fs::path trace = only_trace();
    const Ended info = run(PACELINE " info run");
    EXPECT_NE(info.out.find("Rank 0 still runs"), std::string::npos) << info.out << info.err;
    EXPECT_EQ(state_in_watch(), "running");
    // The lock alone shows it, too, while the heartbeat is late.
    fs::last_write_time(trace, fs::file_time_type::clock::now() - std::chrono::minutes(1));
    EXPECT_EQ(state_in_watch(), "running");
    EXPECT_EQ(format::liveness_of(format::read_trace_header(trace)), format::Liveness::lives);
    for (const char* second : {"", with_own_proc}) {
      const Ended refused = run(second + std::string(PACELINE " record --force -o run -- true"));
      EXPECT_TRUE(refused.by_itself(125)) << refused.err;
    }
    // Without the marker, too.
    fs::remove(directory / "run" / ".paceline-job");
    const Ended refused = run(PACELINE " record --force -o run -- true");
    EXPECT_TRUE(refused.by_itself(125)) << refused.err;
    EXPECT_NE(refused.err.find("still being recorded"), std::string::npos) << refused.err;
    EXPECT_TRUE(fs::exists(trace));

    int pid = 0;
    std::ifstream(pid_file) >> pid;
    ASSERT_GT(pid, 0);
    kill(pid, SIGKILL);  // unshare ends its child, too
    job.join();
    wait_until([&](const std::vector<RecordedFile>&) {
      return format::liveness_of(format::read_trace_header(trace)) != format::Liveness::lives;
    });
    fs::last_write_time(trace, fs::file_time_type::clock::now() - std::chrono::minutes(1));
    EXPECT_EQ(state_in_watch(), "killed");
    const Ended forced = run(PACELINE " record --force -o run -- true");
    EXPECT_TRUE(forced.by_itself(0)) << forced.err;
    EXPECT_FALSE(fs::exists(trace));
  }
}

// Containers of other kinds: only the record's folder can be written, memory for files is tiny, or the kernel denies
// the system calls that Docker's default profile denies.
struct Container {
  const char* name;
  const char* start;
};

class RecordInContainers : public RecordTest, public ::testing::WithParamInterface<Container> {
 protected:
  void SetUp() override {
    RecordTest::SetUp();
    const Ended ended = run(start() + "true");
    if (!ended.by_itself(0)) GTEST_SKIP() << start() << "does not work here: " << ended.err;
  }
  static std::string start() { return GetParam().start + std::string(" "); }
};

TEST_P(RecordInContainers, FourRanksAreRecordedAndUnharmed) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    fs::remove_all(directory / "run");
    const bool inside = repeat % 2 == 0;
    const std::string recorder = PACELINE " record -o run -- ";
    const Ended ended = run("export PACELINE_JOB=test; for rank in 0 1 2 3; do RANK=$rank WORLD_SIZE=4 " +
                            (inside ? start() + recorder : recorder + start()) +
                            CONTROL
                            " ranges & ranks=\"$ranks $!\"; done; "
                            "for rank in $ranks; do wait $rank || exit 1; done");
    ASSERT_TRUE(ended.by_itself(0)) << "in run " << repeat << ": " << ended.err;
    // Under a filter the switches of threads are not recorded, and rank 0 prints a line about it.
    const bool filtered = start().find(" E") != std::string::npos || start().find(" KILL") != std::string::npos;
    EXPECT_EQ(ended.recorder_lines(), filtered ? 1 : 0) << ended.err;
    EXPECT_EQ(ended.err.find("sums: a seccomp filter applies") != std::string::npos, filtered) << ended.err;
    const std::vector<RecordedFile> ranks = files();
    ASSERT_EQ(ranks.size(), 4u) << "in run " << repeat;
    for (int rank = 0; rank < 4; ++rank) {
      const RecordedFile& file = ranks[static_cast<std::size_t>(rank)];
      EXPECT_EQ(file.file.header.rank, rank);
      EXPECT_EQ(file.file.header.closed, 1u);
      EXPECT_EQ(file.of(EventType::push).size(), 7u);
      EXPECT_EQ(file.of(EventType::pop).size(), 7u);
      EXPECT_EQ(file.dropped(), 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, RecordInContainers,
    ::testing::Values(Container{"UserNamespace", "unshare --map-root-user"},
                      Container{"ReadOnlyRootAndTinyShm",
                                "bwrap --unshare-user --unshare-pid --ro-bind / / --dev /dev --proc /proc --size 65536 "
                                "--tmpfs /dev/shm --bind $PWD $PWD"},
                      Container{"SystemCallsDeniedWithEperm", DENIED " EPERM"},
                      Container{"SystemCallsDeniedWithEnosys", DENIED " ENOSYS"},
                      Container{"SystemCallsDeniedByDeath", DENIED " KILL"}),
    [](const auto& container) { return container.param.name; });

}  // namespace
}  // namespace paceline::test
