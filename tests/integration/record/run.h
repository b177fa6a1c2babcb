// SPDX-License-Identifier: Apache-2.0
// Runs programs with the recorder loaded, as `paceline record` does, and reads their files.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

#include "tests/recorded/recorded.h"

namespace paceline::test {

struct Ended {
  int status = 0;  // from waitpid
  std::string out, err;
  bool by_itself(int code) const;  // ended with this exit code
  // Lines of standard error that the recorder wrote.
  int recorder_lines() const;
};

class RecordTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Runs a shell command in `directory` and kills it after the given seconds.
  Ended run(const std::string& command, int seconds = 60) const;

#ifdef PACELINE
  // `paceline record` with these options, into the directory `run`.
  Ended record(const std::string& options, const std::string& command) const {
    return run(PACELINE " record -o run " + options + " -- " + command);
  }
#endif
  // The start of a command line that records the following command, with further variables for it.
  std::string recorded(const std::string& variables = "") const;
  // mpirun with the options that it needs on any machine.
  static std::string mpirun();

  std::vector<RecordedFile> files() const { return read_recorded_directory(directory / "run"); }

  // Waits until the files of a running job fulfil a condition, for a minute at most.
  void wait_until(const std::function<bool(const std::vector<RecordedFile>&)>& shown) const;

  // The only file that there should be.
  RecordedFile only_file() const;

  std::filesystem::path directory;
};

}  // namespace paceline::test
