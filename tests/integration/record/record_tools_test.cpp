// SPDX-License-Identifier: Apache-2.0
// Other tools that wrap MPI functions (PMPI, chapter 14 of the MPI standard) in the same program as the recorder, in
// every order: the recorder sees each call of the program once, and the tool sees what it sees without the recorder.
#include <map>

#include "tests/integration/record/mpi_calls.h"
#include "tests/integration/record/mpi_libraries.h"
#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using format::EventType;

// The recorded calls of one rank, by the function's name.
std::map<std::string, int> calls_of(const RecordedFile& file) {
  std::map<std::string, int> calls;
  for (const RecordedEvent& event : file.events) {
    switch (event.type) {
      case EventType::mpi_begin:
      case EventType::mpi_begin_peer:
      case EventType::mpi_begin_coll:
        ++calls[event.name];
        break;
      default:
        break;
    }
  }
  return calls;
}

std::size_t ends_of(const RecordedFile& file) { return file.of(EventType::mpi_end).size(); }

const std::map<std::string, int> program_calls = {{"MPI_Init", 1},      {"MPI_Comm_split", 1}, {"MPI_Allreduce", 50},
                                                  {"MPI_Sendrecv", 50}, {"MPI_Bcast", 50},     {"MPI_Barrier", 10},
                                                  {"MPI_Comm_free", 1}, {"MPI_Finalize", 1}};

class RecordTools : public RecordTest, public ::testing::WithParamInterface<MpiLibraryOfTests> {
 protected:
  void SetUp() override {
    if (*GetParam().programs == '\0') GTEST_SKIP() << GetParam().name << " is not installed";
    RecordTest::SetUp();
  }

  std::string in(const std::string& file) const { return std::string(GetParam().programs) + "/" + file; }
  std::string one() const { return in("libtool_one.so"); }
  std::string two() const { return in("libtool_two.so"); }
  std::string launch() const { return GetParam().launcher + std::string("-n 2 "); }

  // What the tools print must be the same without the recorder.
  std::vector<RecordedFile> record(const std::string& program, const std::string& before, const std::string& behind) {
    const std::string separator = !before.empty() && !behind.empty() ? ":" : "";
    const Ended alone = run(launch() + "env LD_PRELOAD=" + before + separator + behind + " " + in(program));
    EXPECT_TRUE(alone.by_itself(0)) << alone.err;
    EXPECT_NE(alone.out, "");
    std::string order = before.empty() ? RECORDER : before + ":" + RECORDER;
    if (!behind.empty()) order += ":" + behind;
    const Ended ended = run(launch() + recorded("LD_PRELOAD=" + order) + in(program));
    EXPECT_TRUE(ended.by_itself(0)) << ended.err;
    EXPECT_EQ(ended.out, alone.out);
    EXPECT_EQ(ended.recorder_lines(), 0) << ended.err;
    std::vector<RecordedFile> ranks = files();
    EXPECT_EQ(ranks.size(), 2u);
    for (const auto& [key, calls] : collectives_of(ranks)) EXPECT_EQ(calls.size(), 2u) << calls[0].function;
    return ranks;
  }

  // `calls`: those of the tool itself. They have no arguments, so that no analysis matches them with the program's.
  void expect_all(const std::vector<RecordedFile>& ranks, const std::map<std::string, int>& calls = {}) {
    std::map<std::string, int> expected = program_calls;
    expected.insert(calls.begin(), calls.end());
    for (const RecordedFile& file : ranks) {
      EXPECT_EQ(calls_of(file), expected);
      int sum = 0;
      for (const auto& [name, count] : expected) sum += count;
      EXPECT_EQ(ends_of(file), static_cast<std::size_t>(sum));
      for (const RecordedEvent& event : file.of(EventType::mpi_begin_coll)) {
        EXPECT_NE(lower(event.extension[0].low), 0u) << event.name << " on an unknown communicator";
      }
    }
  }
  // Of a tool before the recorder. Those of a tool behind it are inside the program's calls.
  const std::map<std::string, int> tool_calls = {{"PMPI_Bcast", 10}, {"PMPI_Allreduce", 2}, {"PMPI_Barrier", 1}};
};

TEST_P(RecordTools, ToolPreloadedBehindTheRecorder) { expect_all(record("tool_program", "", one())); }

TEST_P(RecordTools, ToolPreloadedBeforeTheRecorder) { expect_all(record("tool_program", one(), ""), tool_calls); }

TEST_P(RecordTools, ToolIsASharedLibraryOfTheProgram) { expect_all(record("tool_linked", "", "")); }

TEST_P(RecordTools, ToolIsPartOfTheProgram) { expect_all(record("tool_inside", "", ""), tool_calls); }

TEST_P(RecordTools, TwoToolsBehindTheRecorder) { expect_all(record("tool_program", "", one() + ":" + two())); }

TEST_P(RecordTools, ToolsOnBothSidesOfTheRecorder) { expect_all(record("tool_program", one(), two()), tool_calls); }

TEST_P(RecordTools, ToolPreloadedBehindTheRecorderAndAnotherOneInTheProgram) {
  expect_all(record("tool_inside", "", one()), tool_calls);
}

// The tool has wrappers for C and for Fortran. Which of them a call reaches depends on the MPI library.
TEST_P(RecordTools, FortranProgramsAreSeenOnceInEachOrder) {
  const char* program = "tool_program_fortran";
  if (!std::filesystem::exists(in(program))) GTEST_SKIP() << "no Fortran compiler";
  for (const bool before : {true, false}) {
    const std::vector<RecordedFile> ranks = record(program, before ? one() : "", before ? "" : one());
    for (const RecordedFile& file : ranks) {
      std::map<std::string, int> expected = {
          {"MPI_Init", 1}, {"MPI_Allreduce", 30}, {"MPI_Bcast", 20}, {"MPI_Finalize", 1}};
      if (before) expected.insert({{"PMPI_Allreduce", 1}, {"PMPI_Barrier", 1}});
      EXPECT_EQ(calls_of(file), expected) << (before ? "tool before" : "tool behind");
    }
    std::filesystem::remove_all(directory / "run");
  }
}

INSTANTIATE_TEST_SUITE_P(Libraries, RecordTools, ::testing::ValuesIn(mpi_libraries),
                         [](const auto& library) { return std::string(library.param.name); });
}  // namespace
}  // namespace paceline::test
