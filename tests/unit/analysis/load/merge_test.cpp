// SPDX-License-Identifier: Apache-2.0
// Several files as one run: what is taken, what is left out and why, and how the clocks are aligned.
#include "analysis/load/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "analysis/clocks/alignment.h"
#include "profiler/format/error.h"
#include "tests/unit/analysis/kineto_file.h"
#include "tests/unit/analysis/merge_files.h"

namespace paceline::analysis {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Merged : public ::testing::Test {
 protected:
  Merged() { fs::create_directory(directory); }
  ~Merged() override { fs::remove_all(directory); }

  fs::path write(const char* name, const RecordedFile& what) const {
    write_recorded(directory / name, what);
    return directory / name;
  }
  static const MergedFile& row(const MergedRun& run, const fs::path& path) {
    const auto found = std::ranges::find(run.files, path.string(), &MergedFile::name);
    if (found == run.files.end()) throw std::runtime_error(path.string() + " has no row");
    return *found;
  }
  // The end of the first all-reduce of a rank.
  static std::int64_t first_end(const Trace& trace, std::size_t rank) {
    const Slices& slices = trace.ranks[rank].tracks[0].slices;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (trace.name_of(slices, i) == "MPI_Allreduce") return slices.end_ns(i);
    }
    throw std::runtime_error("no collective");
  }

  const fs::path directory = fs::temp_directory_path() / ("paceline-merge-" + std::to_string(::getpid()));
};

TEST_F(Merged, HasBothRanksOfOneRun) {
  const fs::path first = write("a.pace", {.rank = 0, .recording = 1}),
                 second = write("b.pace", {.rank = 1, .recording = 2});
  const MergedRun run = load_merged(std::vector{second, first});
  ASSERT_EQ(run.trace.ranks.size(), 2U);
  ASSERT_EQ(run.files.size(), 2U);
  EXPECT_EQ(run.files[0].name, first.string()) << "by rank";
  for (const MergedFile& file : run.files) {
    EXPECT_TRUE(file.in_run());
    EXPECT_EQ(file.format, "pace");
    EXPECT_EQ(file.host, "node0");
    EXPECT_EQ(file.clock, "shared clock");
    EXPECT_LE(file.clock_error_ns, same_clock_error_ns);
    EXPECT_EQ(file.loss, "");
    EXPECT_EQ(file.end_ns - file.start_ns, 398'000'000);
  }
  EXPECT_EQ(run.files[1].rank, 1);
}

TEST_F(Merged, IsWhatTheDirectoryLoadsAs) {
  write("a.pace", {.rank = 0, .recording = 1});
  const fs::path second = write("b.pace", {.rank = 1, .recording = 2});
  const MergedRun run = load_merged(std::vector{directory, second});
  EXPECT_EQ(run.files.size(), 2U) << "a file that is given with its directory counts once";
  EXPECT_EQ(run.trace.ranks.size(), 2U);
}

TEST_F(Merged, LeavesACopyOut) {
  const fs::path whole = write("rank0.pace", {.rank = 0, .recording = 1});
  const fs::path copy = write("a copy.pace", {.rank = 0, .recording = 1, .steps = 10});
  const fs::path other = write("rank1.pace", {.rank = 1, .recording = 2});
  const MergedRun run = load_merged(std::vector{copy, whole, other});
  EXPECT_EQ(run.trace.ranks.size(), 2U);
  EXPECT_EQ(row(run, copy).left_out, "a copy of " + whole.string()) << "the longer one is kept";
  EXPECT_EQ(row(run, copy).rank, 0);
  EXPECT_EQ(row(run, copy).end_ns - row(run, copy).start_ns, 98'000'000);
  EXPECT_TRUE(row(run, whole).in_run());
  EXPECT_THAT(run.trace.notes, ::testing::Contains(HasSubstr("a copy of")));
}

TEST_F(Merged, LeavesOtherJobsOut) {
  const fs::path first = write("a.pace", {.rank = 0, .recording = 1}),
                 second = write("b.pace", {.rank = 1, .recording = 2});
  const fs::path other = write("0.pace", {.rank = 0, .recording = 3, .job = "8"});
  const MergedRun run = load_merged(std::vector{first, second, other});
  EXPECT_EQ(run.trace.ranks.size(), 2U);
  EXPECT_EQ(row(run, other).left_out, "of another job: 8, and this run is job 7");
  EXPECT_EQ(run.files.back().name, other.string()) << "what is left out comes last";
  EXPECT_THROW(load_merged(std::vector{first, second, other}, {.refuse = true}), Error);
}

TEST_F(Merged, ShowsDamageAndLeavesUnreadableFilesOut) {
  const fs::path first = write("a.pace", {.rank = 0, .recording = 1}),
                 second = write("b.pace", {.rank = 1, .recording = 2});
  damage_file(first);
  const fs::path stump = write("c.pace", {.rank = 1, .recording = 3});
  fs::resize_file(stump, 100);
  std::ofstream(directory / "notes.txt") << "no trace\n";
  const MergedRun run = load_merged(std::vector{first, second, stump, directory / "notes.txt"});
  EXPECT_EQ(run.trace.ranks.size(), 2U);
  EXPECT_THAT(row(run, first).loss, HasSubstr("damaged: "));
  EXPECT_TRUE(row(run, first).in_run());
  EXPECT_FALSE(row(run, stump).in_run());
  EXPECT_THAT(row(run, directory / "notes.txt").left_out, HasSubstr("not a trace file"));
}

TEST_F(Merged, LeavesOutWhatTheUserLeavesOut) {
  const fs::path first = write("a.pace", {.rank = 0, .recording = 1}),
                 second = write("b.pace", {.rank = 1, .recording = 2});
  const MergedRun run = load_merged(std::vector{first, second}, {.without = {second.string()}});
  EXPECT_EQ(run.trace.ranks.size(), 1U);
  EXPECT_EQ(row(run, second).left_out, "not chosen");
  EXPECT_THROW(load_merged(std::vector{first}, {.without = {first.string()}}), Error);
}

TEST_F(Merged, AlignsTheClocksAsChosen) {
  const std::vector files{write("a.pace", {.rank = 0, .recording = 1, .host = "node0"}),
                          write("b.pace", {.rank = 1, .recording = 2, .host = "node1", .clock_ns = 5'000'000})};
  const auto apart = [&](const MergedRun& run) { return first_end(run.trace, 1) - first_end(run.trace, 0); };
  for (const ClockMethod method : {ClockMethod::automatic, ClockMethod::recorded}) {
    const MergedRun run = load_merged(files, {.clock = method});
    EXPECT_EQ(row(run, files[1]).clock, "UTC");
    EXPECT_NEAR(row(run, files[1]).clock_error_ns, 20e6, 1) << "as both systems state it";
    EXPECT_NEAR(double(apart(run)), 5e6, 1e3);
  }
  const MergedRun collectives = load_merged(files, {.clock = ClockMethod::collectives});
  EXPECT_EQ(row(collectives, files[1]).clock, "collectives");
  EXPECT_LT(std::abs(apart(collectives)), 1000);
  EXPECT_LT(row(collectives, files[1]).clock_error_ns, 1000);
  const MergedRun moved =
      load_merged(files, {.clock = ClockMethod::collectives, .offset_ns = {{files[1].string(), 3'000'000}}});
  EXPECT_NEAR(double(apart(moved)), 3e6, 1e3);
  EXPECT_EQ(std::ranges::min_element(moved.trace.ranks, {}, &Rank::start_ns)->start_ns, 0);
  EXPECT_THROW(load_merged(files, {.clock = ClockMethod::exchange}), Error);
  EXPECT_NO_THROW(load_merged(std::vector{files[0]}, {.clock = ClockMethod::exchange}));
}

TEST_F(Merged, LeavesARankOutThatWasGivenAlready) {
  const auto write_json = [&](const char* name, int rank) {
    std::ofstream(directory / name) << kineto_file(operator_event("aten::add", "10", "5"),
                                                   "\"distributedInfo\": {\"rank\": " + std::to_string(rank) + "}");
    return directory / name;
  };
  const std::vector files{write_json("a.json", 0), write_json("b.json", 1), write_json("c.json", 1)};
  const MergedRun run = load_merged(files);
  EXPECT_EQ(run.trace.ranks.size(), 2U);
  EXPECT_EQ(row(run, files[2]).left_out, "rank 1 was given already");
  EXPECT_TRUE(row(run, files[1]).in_run());
  EXPECT_THROW(load_merged(files, {.refuse = true}), Error);
  EXPECT_THROW(load_merged(files, {.clock = ClockMethod::exchange}), Error);
}

TEST_F(Merged, LeavesOtherFormatsOut) {
  const fs::path recorded = write("a.pace", {.rank = 0, .recording = 1});
  std::ofstream(directory / "b.json") << kineto_file(operator_event("aten::add", "10", "5"));
  const MergedRun run = load_merged(std::vector{recorded, directory / "b.json"});
  EXPECT_EQ(row(run, directory / "b.json").left_out, "of the format kineto, and this run is read as pace");
}

TEST_F(Merged, StopsWhereItsProgressIsStopped) {
  const fs::path first = write("a.pace", {.rank = 0, .recording = 1}),
                 second = write("b.pace", {.rank = 1, .recording = 2});
  EXPECT_THROW(load_merged(std::vector{first, second}, {}, [](double) { return false; }), Error);
}

TEST(ClockMethods, HaveNames) {
  EXPECT_EQ(clock_method_named("auto"), ClockMethod::automatic);
  EXPECT_EQ(clock_method_named("collectives"), ClockMethod::collectives);
  EXPECT_FALSE(clock_method_named("guess"));
}

}  // namespace
}  // namespace paceline::analysis
