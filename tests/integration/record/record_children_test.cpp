// Which processes of a job are recorded: children, workers with a rank of their own, successors.
#include <algorithm>

#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using format::EventType;

class RecordChildren : public RecordTest {
 protected:
  // By number of ranges, the fewest last.
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

TEST_F(RecordChildren, AForkedChildHasAFileOfItsOwnWithChildren) {
  const auto alone = recorded_files("", CONTROL " fork");
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].of(EventType::push).size(), 6u);
  const auto both = recorded_files("--children", CONTROL " fork");
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].named(EventType::push, "parent").size(), 6u);
  EXPECT_EQ(both[0].of(EventType::push).size(), 6u);
  EXPECT_EQ(both[0].file.header.closed, 1u);
  EXPECT_EQ(both[1].file.parent, std::to_string(both[0].file.header.pid));
  // Handles that the parent made go on in the child.
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
  ASSERT_EQ(recorded_files("", CONTROL " fork-exec").size(), 1u);
  const auto both = recorded_files("--children", CONTROL " fork-exec");
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].named(EventType::push, "parent").size(), 6u);
  EXPECT_EQ(both[1].named(EventType::push, "successor").size(), 7u);
  EXPECT_EQ(both[1].file.parent, std::to_string(both[0].file.header.pid));
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

TEST_F(RecordChildren, ASuccessorHasASuffixAndThePredecessorStaysWhole) {
  const auto both = recorded_files("", CONTROL " exec");
  ASSERT_EQ(both.size(), 2u);
  for (const RecordedFile& file : both) {
    const bool successor = file.file.path.string().ends_with("-2.pace");
    EXPECT_EQ(file.named(EventType::push, successor ? "successor" : "predecessor").size(), successor ? 7u : 5u);
  }
  EXPECT_EQ(both[0].file.header.pid, both[1].file.header.pid);
}

TEST_F(RecordChildren, PythonsWorkersAreRecordedWithChildren) {
  for (const std::string way : {"fork", "spawn"}) {
    const std::string script = "/usr/bin/python3 " SCRIPTS "/processes.py " RANGES_LIBRARY " " + way;
    EXPECT_EQ(recorded_files("", script).size(), 1u) << way;
    const auto all = recorded_files("--children", script);
    ASSERT_EQ(all.size(), 3u) << way;
    EXPECT_EQ(all[0].named(EventType::push, "parent").size(), 22u) << way;
    for (int worker = 1; worker <= 2; ++worker) {
      EXPECT_EQ(all[worker].named(EventType::push, "worker").size(), 5u) << way;
      EXPECT_EQ(all[worker].file.parent, std::to_string(all[0].file.header.pid)) << way;
    }
  }
}

}  // namespace
}  // namespace paceline::test
