// SPDX-License-Identifier: Apache-2.0
// Runs `paceline` in a directory of the test's own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/shares.h"

namespace paceline {

namespace fs = std::filesystem;

struct Outcome {
  int status = -1;
  std::string output, errors;
};

inline std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class CommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = fs::temp_directory_path() /
                 (std::string("paceline-cli-") + test->test_suite_name() + test->name() + std::to_string(getpid()));
    fs::create_directories(directory_ / "run");
  }
  void TearDown() override { fs::remove_all(directory_); }

  Outcome paceline(const std::string& arguments) const {
    const std::string command = "cd '" + directory_.string() + "' && '" PACELINE_PROGRAM "' " + arguments + " 2>errors";
    Outcome outcome;
    std::FILE* pipe = popen(command.c_str(), "r");
    char buffer[4096];
    for (std::size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.output.append(buffer, n);
    const int status = pclose(pipe);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.errors = text_of(directory_ / "errors");
    if (arguments.starts_with("report")) {
      EXPECT_EQ(impossible_share(outcome.output), "") << arguments;
    }
    return outcome;
  }

  // One line on standard error with `what` in it, nothing on standard output.
  void expect_refused(const std::string& arguments, int status, const std::string& what) const {
    const Outcome outcome = paceline(arguments);
    EXPECT_EQ(outcome.status, status) << arguments;
    EXPECT_THAT(outcome.errors, ::testing::HasSubstr(what)) << arguments;
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
    EXPECT_EQ(outcome.output, "");
  }

  fs::path directory_;
};

}  // namespace paceline
