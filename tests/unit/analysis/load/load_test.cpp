// SPDX-License-Identifier: Apache-2.0
#include "analysis/load/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "profiler/format/error.h"

namespace paceline::analysis {

extern const TraceReader spans_reader;  // example_reader.cpp

namespace {

using ::testing::HasSubstr;

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Load : public ::testing::Test {
 protected:
  Load() { std::filesystem::create_directory(directory); }
  ~Load() override { std::filesystem::remove_all(directory); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(directory / name) << text; }

  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("paceline-load-" + std::to_string(::getpid()));
  static constexpr const TraceReader* both[] = {&pace_reader, &spans_reader};
};

TEST_F(Load, ReadsAFormatThatOneRowAdds) {
  write("b.txt", "spans 1\n1 10 30 backward\n");
  write("a.txt", "spans 1\n0 0 20 forward\n0 20 25 step\n");
  write("notes.txt", "no trace\n");
  const Trace trace = load_run(directory, {}, both);
  ASSERT_EQ(trace.ranks.size(), 2U);
  EXPECT_EQ(trace.ranks[0].format, "spans");
  ASSERT_EQ(trace.ranks[0].tracks.size(), 1U);
  const Slices& slices = trace.ranks[0].tracks[0].slices;
  ASSERT_EQ(slices.size(), 2U);
  EXPECT_EQ(trace.names[trace.kinds[slices.kind[0]].name], "forward");
  EXPECT_EQ(slices.duration_ns[1], 5);
  ASSERT_EQ(trace.ranks[1].tracks[0].slices.size(), 1U);
  // The files share no clock.
  EXPECT_EQ(trace.ranks[1].tracks[0].slices.start_ns[0], 0);
  EXPECT_EQ(trace.ranks[1].clock_source, "none");
}

TEST_F(Load, KeepsTheOffsetBetweenTheRanksOfOneFile) {
  write("a.txt", "spans 1\n0 100 120 forward\n1 110 130 backward\n");
  const Trace trace = load_run(directory, {}, both);
  ASSERT_EQ(trace.ranks.size(), 2U);
  EXPECT_EQ(trace.ranks[0].tracks[0].slices.start_ns[0], 0);
  EXPECT_EQ(trace.ranks[1].tracks[0].slices.start_ns[0], 10);
  EXPECT_EQ(trace.ranks[1].clock_source, "file");
}

TEST_F(Load, RecognisesAFormatByItsContentOnly) {
  write("run.pace", "spans 1\n0 0 20 forward\n");
  EXPECT_EQ(find_run_files(directory, {}, both).files.size(), 1U);
  EXPECT_THROW(find_run_files(directory), Error);
  EXPECT_THROW(load_run(directory / "run.pace"), Error);
}

TEST_F(Load, NamesTheLineThatAReaderRefuses) {
  write("a.txt", "spans 1\n0 0 20 forward\n0 30 20 step\n");
  try {
    load_run(directory, {}, both);
    FAIL() << "the line was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("a.txt:3: expected"));
  }
}

TEST(Hacking, ShowsTheExampleReaderAsItIsCompiled) {
  const std::filesystem::path source = PACELINE_SOURCE;
  const std::string example = text_of_file(source / "tests/unit/analysis/importers/example_reader.cpp");
  ASSERT_FALSE(example.empty());
  EXPECT_THAT(text_of_file(source / "docs/hacking.md"), HasSubstr("```cpp\n" + example + "```\n"));
}

}  // namespace
}  // namespace paceline::analysis
