// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/record/run.h"

#include <stdlib.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

namespace paceline::test {
namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

bool Ended::by_itself(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }

int Ended::recorder_lines() const {
  int lines = 0;
  for (std::size_t at = 0; (at = err.find("paceline: ", at)) != std::string::npos; ++at) ++lines;
  return lines;
}

void RecordTest::SetUp() {
  char place[] = "/tmp/paceline-record-XXXXXX";
  ASSERT_NE(mkdtemp(place), nullptr);
  directory = place;
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);  // other tests run at the same time
}

void RecordTest::TearDown() {
  if (!directory.empty()) std::filesystem::remove_all(directory);
}

Ended RecordTest::run(const std::string& command, int seconds) const {
  Ended ended;
  const std::string script = "cd " + directory.string() + " && exec timeout -k 5 " + std::to_string(seconds) +
                             " sh -c '" + command + "' >stdout.txt 2>stderr.txt </dev/null";
  ended.status = std::system(script.c_str());
  ended.out = read_text(directory / "stdout.txt");
  ended.err = read_text(directory / "stderr.txt");
  return ended;
}

std::string RecordTest::recorded(const std::string& variables) const {
  return "env PACELINE_OUTPUT=" + (directory / "run").string() +
         " PACELINE_JOB=test NVTX_INJECTION64_PATH=" RECORDER " LD_PRELOAD=" RECORDER " " + variables + " ";
}

void RecordTest::wait_until(const std::function<bool(const std::vector<RecordedFile>&)>& shown) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < end) {
    try {
      if (shown(files())) return;
    } catch (const std::exception&) {  // a file that changes while it is read
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

RecordedFile RecordTest::only_file() const {
  std::vector<RecordedFile> all = files();
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? RecordedFile{} : all.front();
}

std::string RecordTest::mpirun() { return MPIRUN " --bind-to none "; }

}  // namespace paceline::test
