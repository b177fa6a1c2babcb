// A recording in a child process: a process records once, and only its end shows the whole file.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "profiler/inject/core/lineage.h"
#include "tests/recorded/recorded.h"

namespace paceline::test {

// An empty directory that recordings go to; removed at the end.
class RecordingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char place[] = "/tmp/paceline-inject-XXXXXX";
    ASSERT_NE(mkdtemp(place), nullptr);
    directory = place;
    setenv("PACELINE_OUTPUT", (directory / "run").c_str(), 1);
    unsetenv("PACELINE_BUFFER_BYTES");
    setenv("PACELINE_COUNTERS_US", "0", 1);  // they have tests of their own, and would be among these events
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  // The one file of the directory.
  RecordedFile only_file() const {
    std::vector<RecordedFile> files = read_recorded_directory(directory / "run");
    EXPECT_EQ(files.size(), 1u);
    if (files.empty()) return {};
    return files.front();
  }

  std::filesystem::path directory;
};

// Runs the statements in a child, which then ends normally. The child counts as a program of its own, not as a worker
// of the tests' process. (In brackets: they may have commas in them.)
#define RECORD(...)                                  \
  EXPECT_EXIT(([&] {                                 \
                ::paceline::inject::start_lineage(); \
                __VA_ARGS__;                         \
                exit(0);                             \
              }()),                                  \
              ::testing::ExitedWithCode(0), "")

}  // namespace paceline::test
