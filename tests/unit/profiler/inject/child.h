// SPDX-License-Identifier: Apache-2.0
// A recording in a child process: a process records only once, and its file is complete only after its end.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "profiler/inject/system/lineage.h"
#include "tests/recorded/recorded.h"

namespace paceline::test {

// An empty directory for recordings, which is removed at the end.
class RecordingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char place[] = "/tmp/paceline-inject-XXXXXX";
    ASSERT_NE(mkdtemp(place), nullptr);
    directory = place;
    setenv("PACELINE_OUTPUT", (directory / "run").c_str(), 1);
    unsetenv("PACELINE_BUFFER_BYTES");
    setenv("PACELINE_COUNTERS_US", "0",
           1);  // counters have tests of their own, and their events would disturb these tests
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
// of the tests' process. The statements are in brackets, because they may contain commas.
#define RECORD(...)                                  \
  EXPECT_EXIT(([&] {                                 \
                ::paceline::inject::start_lineage(); \
                __VA_ARGS__;                         \
                exit(0);                             \
              }()),                                  \
              ::testing::ExitedWithCode(0), "")

}  // namespace paceline::test
