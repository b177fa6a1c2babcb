// SPDX-License-Identifier: Apache-2.0
// Problems around a recording: removed or truncated files and directories, wrong options, spawned processes.
#include <nlohmann/json.hpp>

#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class RecordEdges : public RecordTest {};

TEST_F(RecordEdges, AProgramSurvivesATruncatedTraceFile) {
  const Ended ended = run(recorded() + CUT " trace run");
  EXPECT_TRUE(ended.by_itself(0)) << ended.status << ended.err;
  EXPECT_EQ(ended.out, "done\n");
  EXPECT_EQ(ended.recorder_lines(), 1) << ended.err;
  EXPECT_TRUE(has(ended.err, "truncated this file")) << ended.err;
}

TEST_F(RecordEdges, AFaultOfTheProgramHasItsUsualEffect) {
  EXPECT_EQ(run(recorded() + CUT " own run").status, run(CUT " own run").status);
  const Ended caught = run(recorded() + CUT " caught run");
  EXPECT_TRUE(caught.by_itself(0)) << caught.status << caught.err;
  EXPECT_EQ(caught.out, "done\n");
}

TEST_F(RecordEdges, ARemovedDirectoryIsReportedAtTheEnd) {
  const Ended ended = run(recorded() + CUT " gone run");
  EXPECT_TRUE(ended.by_itself(0)) << ended.status << ended.err;
  EXPECT_TRUE(has(ended.err, "was removed during the recording")) << ended.err;
  EXPECT_EQ(ended.recorder_lines(), 1) << ended.err;
}

#ifdef PACELINE
TEST_F(RecordEdges, ARemovedWorkingDirectoryIsOneLineAndStatus125) {
  for (const char* options : {"", "-o run ", "--stage stage -o /tmp/paceline-never-made "}) {
    const Ended ended =
        run(std::string("mkdir gone && cd gone && rmdir ../gone && " PACELINE " record ") + options + "-- /bin/true");
    EXPECT_TRUE(ended.by_itself(125)) << options << ended.status;
    EXPECT_TRUE(has(ended.err, "the current directory cannot be found")) << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
  }
  const Ended ended = run("mkdir gone && cd gone && rmdir ../gone && " PACELINE " record -o " +
                          (directory / "run").string() + " -- /bin/true");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
}

TEST_F(RecordEdges, WrongNumbersAreRejectedWithTheReason) {
  const std::pair<const char*, const char*> wrong[] = {
      {"--buffer=-5M", "is not a size"},
      {"--buffer=", "is not a size"},
      {"--buffer=5X", "is not a size"},
      {"--buffer=1.5M", "is not a size"},
      {"--buffer=0x10", "is not a size"},
      {"--buffer=99999999999999999999", "is too large: a size must be below 16E"},
      {"--buffer=99999999999G", "is too large: a size must be below 16E"},
      {"--buffer=1K", "the size must be from 256K to 1G"},
      {"--max-memory=-1", "is not a size"},
      {"--max-memory=1M", "must be at least 4M"},
      {"--max-size=-1G", "is not a size"},
      {"--delay=-1", "is not a number of seconds"},
      {"--delay=", "is not a number of seconds"},
      {"--delay=0.0001", "is not a number of seconds"},
      {"--duration=nan", "is not a number of seconds"},
      {"--ring=1e400", "is not a number of seconds"},
      {"--ring-signal=99999999999999999", "there is no signal"},
      {"--counters=-3", "is neither 0 nor a rate from 0.001 to 1000 per second"},
      {"--iterations=-1:3", "is not of the form 10:12"},
  };
  for (const auto& [option, message] : wrong) {
    const Ended ended = run(std::string(PACELINE " record -o run ") + option + " -- /bin/true");
    EXPECT_TRUE(ended.by_itself(2)) << option << ended.status;
    EXPECT_TRUE(has(ended.err, message)) << option << ended.err;
    EXPECT_TRUE(has(ended.err, std::string(option).substr(0, std::string(option).find('=')))) << ended.err;
  }
  for (const char* right : {"--buffer 8M", "--buffer 8MB", "--buffer 8MiB", "--buffer 8388608", "--buffer 8192k"}) {
    EXPECT_TRUE(run(std::string(PACELINE " record -o run ") + right + " -- /bin/true").by_itself(0)) << right;
  }
}

TEST_F(RecordEdges, TheClocksOfTheCpusAreComparedBeforeTheCommandStarts) {
  std::string source;
  for (int attempt = 0; attempt < 30 && source.empty(); ++attempt) {  // both CPUs must be free for a moment
    std::filesystem::remove_all(directory / "run");
    const Ended ended = record("", CUT " caught run");
    ASSERT_TRUE(ended.by_itself(0)) << ended.err;
    source = only_file().setting("counter_error_source");
  }
  const auto document = nlohmann::json::parse(run(PACELINE " info --format json run").out);
  const auto& clock = document["traces"][0]["clock"];
  if (source.empty()) GTEST_SKIP() << "one CPU is allowed, or the CPUs were too busy to be compared";
  EXPECT_TRUE(has(source, "measured between ")) << source;
  EXPECT_EQ(clock["error_source"], source);
  EXPECT_EQ(clock["error_ns"], std::stod(only_file().setting("counter_error_ns")));
  EXPECT_GT(clock["error_ns"], 0);
  EXPECT_LT(clock["error_ns"], 1e5);
  EXPECT_TRUE(has(run(PACELINE " info run").out, source));
  // With one CPU nothing is measured, and the variable from another boot is ignored.
  std::filesystem::remove_all(directory / "run");
  run("PACELINE_CLOCK_ERROR=\"1 other-boot measured\" taskset -c 0 " PACELINE " record -o run -- " CUT " caught run");
  EXPECT_EQ(only_file().setting("counter_error_ns"), "");
}

TEST_F(RecordEdges, ACommandThatRecordsNothingIsOneLine) {
  const std::string nothing = "no process of the command opened a trace file";
  const std::pair<std::string, bool> commands[] = {
      {"/bin/true", true},
      {"env -i " CUT " caught run", true},
      {"sh -c \"env -i " CUT " caught run; true\"", true},
      {"sh -c \"true; exec env -i " CUT " caught run\"", true},
      {"/usr/bin/python3 -c \"import ctypes, subprocess; ctypes.CDLL(None).clearenv(); subprocess.call([\\\"" CUT
       "\\\", \\\"caught\\\", \\\"run\\\"])\"",
       true},
      {CUT " caught run", false},
      {"env -u LD_PRELOAD " CUT " caught run", false},
      {"sh -c \"" CUT " caught run; true\"", false},
      {"sh -c \"/bin/true; exec " CUT " caught run\"", false},
      {mpirun() + "-n 2 " CUT " caught run", false},
  };
  for (const std::string options : {"", "--stage stage "}) {
    for (const auto& [command, is_said] : commands) {
      std::filesystem::remove_all(directory / "run");
      const Ended ended = record(options, command);
      EXPECT_TRUE(ended.by_itself(0)) << options << command << ended.status << ended.err;
      const std::size_t first = ended.err.find(nothing);
      EXPECT_EQ(first != std::string::npos, is_said) << options << command << ": " << ended.err;
      EXPECT_EQ(ended.err.rfind(nothing), first) << options << command << ": " << ended.err;
      EXPECT_EQ(files().empty(), is_said) << options << command;
    }
  }
}

TEST_F(RecordEdges, ProcessesThatMpiSpawnsAreReported) {
  const Ended alone = run(mpirun() + "-n 1 " PACELINE " record -o run -- " SPAWN);
  ASSERT_TRUE(alone.by_itself(0)) << alone.err;
  EXPECT_TRUE(has(alone.err, "MPI_Comm_spawn started 2 processes")) << alone.err;
  EXPECT_TRUE(has(run(PACELINE " info run").out, "2 processes are not shown")) << run(PACELINE " info run").out;
  EXPECT_TRUE(has(run(PACELINE " report run").err, "2 processes are not shown"));
  // If mpirun itself is recorded, its spawned processes are recorded too; they have ranks of their own.
  std::filesystem::remove_all(directory / "run");
  const Ended all = record("", mpirun() + "-n 1 " SPAWN);
  ASSERT_TRUE(all.by_itself(0)) << all.err;
  const auto document = nlohmann::json::parse(run(PACELINE " info --format json run").out);
  ASSERT_EQ(document["traces"].size(), 1u) << document.dump(1);
  EXPECT_EQ(document["traces"][0]["world_size"], 1);
  ASSERT_EQ(document["notes"].size(), 1u);
  EXPECT_TRUE(has(document["notes"][0], "2 recorded")) << document["notes"];
}
#endif

}  // namespace
}  // namespace paceline::test
