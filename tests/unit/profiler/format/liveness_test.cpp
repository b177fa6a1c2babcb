// SPDX-License-Identifier: Apache-2.0
// What says whether the process of a trace still records: itself, its lock, its heartbeat, or only the file's age.
#include "profiler/format/liveness.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "profiler/format/process.h"
#include "profiler/format/recorder_lock.h"

namespace paceline::format {
namespace {

class LivenessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    facts.path = std::filesystem::temp_directory_path() / ("paceline-liveness-" + std::to_string(getpid()));
    std::ofstream(facts.path) << "x";
    facts.host = this_host();
    facts.boot_id = this_boot();
    facts.header.pid = static_cast<std::uint32_t>(getpid());
    ProcessStatus self;
    ASSERT_TRUE(read_own_process(self));
    facts.process_start = self.start;
  }
  void TearDown() override { std::filesystem::remove(facts.path); }

  void set_age(int seconds) const {
    std::filesystem::last_write_time(facts.path,
                                     std::filesystem::file_time_type::clock::now() - std::chrono::seconds(seconds));
  }

  TraceFacts facts;
};

TEST_F(LivenessTest, AFileWithoutANamespaceGoesByProcessHostAndBoot) {
  EXPECT_EQ(liveness_of(facts), Liveness::lives);
  ++facts.process_start;
  EXPECT_EQ(liveness_of(facts), Liveness::ended);
  --facts.process_start;
  facts.boot_id = "an earlier boot";
  EXPECT_EQ(liveness_of(facts), Liveness::ended);
  facts.host = "another host";
  EXPECT_EQ(liveness_of(facts), Liveness::may_live);
  set_age(700);
  EXPECT_EQ(liveness_of(facts), Liveness::ended);
}

TEST_F(LivenessTest, AClosedFileHasEnded) {
  facts.header.closed = 1;
  EXPECT_EQ(liveness_of(facts), Liveness::ended);
}

TEST_F(LivenessTest, InThisNamespaceTheProcessDecides) {
  facts.pid_namespace = pid_namespace();
  facts.heartbeat_s = heartbeat_s;
  set_age(100'000);
  EXPECT_EQ(liveness_of(facts), Liveness::lives);
  set_age(0);
  ++facts.process_start;
  EXPECT_EQ(liveness_of(facts), Liveness::ended);
}

TEST_F(LivenessTest, InAnotherNamespaceTheLockAndTheHeartbeatDecide) {
  facts.pid_namespace = pid_namespace() + 1;
  facts.heartbeat_s = heartbeat_s;
  const int own = open(facts.path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(own, 0);
  if (!is_on_local_file_system(own)) GTEST_SKIP() << facts.path << " is not on a local file system that is known";
  close(own);
  EXPECT_EQ(liveness_of(facts), Liveness::may_live);
  set_age(60);
  EXPECT_EQ(liveness_of(facts), Liveness::ended);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t recorder = fork();
  if (recorder == 0) {
    const int file = open(facts.path.c_str(), O_RDWR);
    lock_as_recorder(file);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(liveness_of(facts), Liveness::lives);
  kill(recorder, SIGKILL);
  waitpid(recorder, nullptr, 0);
  EXPECT_EQ(liveness_of(facts), Liveness::ended);
}

}  // namespace
}  // namespace paceline::format
