// SPDX-License-Identifier: Apache-2.0
// Runs `record` as a separate program, with a recorder library that records nothing.
#include "profiler/record/record.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "profiler/format/error.h"
#include "profiler/format/writer.h"

namespace paceline::record {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Outcome {
  int status = -1;     // as a shell sees it
  std::string output;  // standard output and error
};

class Record : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() /
                 (std::string("paceline-record-") + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
                  "-" + std::to_string(getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  // Runs `record` with these arguments, in a shell whose environment has only those launcher variables that are in
  // `before`.
  Outcome record(const std::string& arguments, const std::string& before = "") const {
    const std::string line = "cd " + directory_.string() + " && env -i PATH=\"$PATH\" HOME=/ " + before + " " +
                             RECORD_COMMAND + " record " + arguments + " 2>&1";
    FILE* pipe = popen(line.c_str(), "r");
    Outcome outcome;
    char buffer[4096];
    for (std::size_t got = 0; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.output.append(buffer, got);
    const int status = pclose(pipe);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
  }
  // Leaves a trace of `job` in the directory `run`.
  fs::path leave_trace(const std::string& job, const std::string& name = "old.pace") const {
    fs::create_directories(directory_ / "run");
    format::HeaderFacts facts;
    facts.job = job.c_str();
    format::write_trace_file(directory_ / "run" / name, facts, {});
    return directory_ / "run" / name;
  }

  fs::path directory_;
};

constexpr char open_mpi[] =
    "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 PMIX_NAMESPACE=77 "
    "OMPI_MCA_orte_precondition_transports=ab-cd";

TEST_F(Record, EndsWithTheCommandsOwnStatus) {
  EXPECT_EQ(record("-- true").status, 0);
  EXPECT_EQ(record("-- sh -c 'exit 7'").status, 7);
  EXPECT_EQ(record("-- sh -c 'kill -9 $$'").status, 128 + 9);
}

TEST_F(Record, ReportsInOneLineACommandThatCannotStart) {
  const Outcome missing = record("-- no-such-command");
  EXPECT_EQ(missing.status, 127);
  EXPECT_EQ(missing.output, "paceline record: no-such-command: command not found\n");
  const Outcome directory = record("-- /tmp");
  EXPECT_EQ(directory.status, 126);
  EXPECT_EQ(directory.output, "paceline record: /tmp: Permission denied\n");
}

TEST_F(Record, PutsTheRecorderIntoTheEnvironment) {
  const std::string library = fs::path(RECORD_COMMAND).parent_path().parent_path() / "lib/libpaceline-inject.so";
  const Outcome outcome = record("-o run --set model=resnet18 --set 'note=a b' --buffer 4M -- env");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.output, HasSubstr("LD_PRELOAD=$ORIGIN/../"));
  EXPECT_THAT(outcome.output, HasSubstr("/.." + library + "\n"));
  EXPECT_THAT(outcome.output, HasSubstr("PACELINE_RECORDER=" + library + "\n"));
  const std::string entry = fs::path(library).parent_path() / "libpaceline-nvtx.so";
  EXPECT_THAT(outcome.output, HasSubstr("NVTX_INJECTION64_PATH=" + entry + "\n"));
  EXPECT_THAT(outcome.output, HasSubstr("PACELINE_OUTPUT=" + (directory_ / "run").string() + "\n"));
  EXPECT_THAT(outcome.output, HasSubstr("PACELINE_PATTERN=%h-r%r-p%p.pace\n"));
  EXPECT_THAT(outcome.output, HasSubstr("PACELINE_SET=model=resnet18\nnote=a b\n"));
  EXPECT_THAT(outcome.output, HasSubstr("PACELINE_BUFFER_BYTES=4194304\n"));
  EXPECT_THAT(outcome.output, HasSubstr("PACELINE_JOB=record-"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("PACELINE_FORCE")));
  EXPECT_TRUE(fs::is_directory(directory_ / "run"));
}

TEST_F(Record, PutsEachOptionIntoTheEnvironment) {
  const Outcome outcome = record(
      "--iterations 3:5 --iteration-name 'lap *' --delay 1.5 --duration 60 --capture-range cudaprofilerapi --children "
      "--max-memory 32M --max-size 2G --lossless --ring 10 --ring-signal SIGUSR1 --ring-slow 1.5 --hang 30 -- env");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  for (const char* line :
       {"ITERATIONS=3:5", "ITERATION_NAME=lap *", "DELAY_MS=1500", "DURATION_MS=60000", "CAPTURE_RANGE=1", "CHILDREN=1",
        "MAX_MEMORY_BYTES=33554432", "MAX_SIZE_BYTES=2147483648", "LOSSLESS=1", "RING_MS=10000", "RING_SIGNAL=10",
        "RING_SLOW_PERMILLE=1500", "HANG_MS=30000"}) {
    EXPECT_THAT(outcome.output, HasSubstr(std::string("PACELINE_") + line + "\n"));
  }
  EXPECT_THAT(record("--ring 1 --ring-signal none -- env").output, HasSubstr("PACELINE_RING_SIGNAL=0\n"));
  EXPECT_THAT(record("-- env").output, Not(HasSubstr("PACELINE_RING")));
}

TEST_F(Record, PassesTheCounterIntervalOn) {
  EXPECT_THAT(record("-o a -- env").output, Not(HasSubstr("PACELINE_COUNTERS")));
  EXPECT_THAT(record("-o b --counters 0 -- env").output, HasSubstr("PACELINE_COUNTERS_US=0\n"));
  EXPECT_THAT(record("-o c --counters 2.5 -- env").output, HasSubstr("PACELINE_COUNTERS_US=400000\n"));
  EXPECT_THAT(record("-o d --sample off -- env").output, HasSubstr("PACELINE_SAMPLE_US=0\n"));
  EXPECT_THAT(record("-o e --sample 100 --sample-threads all -- env").output,
              AllOf(HasSubstr("PACELINE_SAMPLE_US=10000\n"), HasSubstr("PACELINE_SAMPLE_THREADS=all\n")));
}

TEST_F(Record, HelpIsGroupedByTopic) {
  const Outcome help = record("--help");
  EXPECT_THAT(help.output, HasSubstr("--nvtx-domains NAMES ...  ")) << "the text is glued to its option";
  std::size_t at = 0;
  for (const char* topic : {"Output:", "What to record:", "Limits:", "Flight recorder and hangs:"}) {
    const std::size_t found = help.output.find(topic);
    ASSERT_NE(found, std::string::npos) << topic << help.output;
    EXPECT_GE(found, at) << topic;
    at = found;
  }
}

TEST_F(Record, PassesTheNvtxFiltersOn) {
  const Outcome outcome =
      record("--nvtx-domains A,B --nvtx-domains 'with space' --nvtx-exclude-categories layer -- env");
  EXPECT_THAT(outcome.output, HasSubstr("PACELINE_NVTX_DOMAINS=A,B,with space\n"));
  EXPECT_THAT(outcome.output, HasSubstr("PACELINE_NVTX_EXCLUDE_CATEGORIES=layer\n"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("PACELINE_NVTX_EXCLUDE_DOMAINS")));
  EXPECT_THAT(outcome.output, Not(HasSubstr("PACELINE_NVTX_CATEGORIES")));
}

TEST_F(Record, KeepsOtherPreloadsAndReportsAReplacedTool) {
  // A program built with AddressSanitizer requires its own library first, unless an option permits another order.
  const std::string preload = "ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=libm.so.6";
  EXPECT_THAT(record("-- env", preload).output, HasSubstr("libpaceline-inject.so:libm.so.6\n"));
  const Outcome replaced = record("-- env", "NVTX_INJECTION64_PATH=/opt/tool.so");
  EXPECT_EQ(replaced.status, 0);
  EXPECT_THAT(replaced.output, StartsWith("paceline record: NVTX_INJECTION64_PATH=/opt/tool.so is replaced: NVTX loads "
                                          "only one tool, which is now the recorder\n"));
}

TEST_F(Record, AcceptsADirectoryAPatternOrBothAsOutput) {
  EXPECT_THAT(record("-- env").output, HasSubstr("PACELINE_OUTPUT=" + (directory_ / "paceline-run").string() + "\n"));
  const Outcome both = record("-o a/b/r%r.pace -- env");
  EXPECT_THAT(both.output, HasSubstr("PACELINE_OUTPUT=" + (directory_ / "a/b").string() + "\n"));
  EXPECT_THAT(both.output, HasSubstr("PACELINE_PATTERN=r%r.pace\n"));
  EXPECT_THAT(record("-o %p.pace -- env").output, HasSubstr("PACELINE_OUTPUT=" + directory_.string()));
  EXPECT_THAT(record("-o 'job-%q{JOB}-%r' -- env", std::string("JOB=5 ") + open_mpi).output,
              HasSubstr("PACELINE_OUTPUT=" + (directory_ / "job-5-1").string() + "\n"));
}

TEST_F(Record, PassesArgumentsAfterTheCommandToIt) {
  EXPECT_EQ(record("-- echo -o x --force --set -- --help").output, "-o x --force --set -- --help\n");
  EXPECT_EQ(record("-o run echo --force -- x").output, "--force -- x\n");
}

TEST_F(Record, WrongUsageEndsWithStatusTwo) {
  for (const char* arguments : {"",
                                "-o run",
                                "--bogus -- true",
                                "--set novalue -- true",
                                "--set =v -- true",
                                "-o 'run-%z' -- true",
                                "-o '%q{X.pace' -- true",
                                "--buffer 3 -- true",
                                "--buffer 2G -- true",
                                "--iterations 5:3 -- true",
                                "--iterations x -- true",
                                "--delay 0 -- true",
                                "--delay nan -- true",
                                "--ring-slow 2 -- true",
                                "--ring-signal USR1 -- true",
                                "--ring 1 --ring-signal KILL -- true",
                                "--ring 1 --ring-slow 0.5 -- true",
                                "--max-size 5 -- true",
                                "--buffer 64M --max-memory 32M -- true",
                                "--capture-range nvtx -- true",
                                "--counters 2000 -- true",
                                "--counters -1 -- true",
                                "--counters often -- true",
                                "--sample 0 -- true",
                                "--sample-threads some -- true"}) {
    const Outcome outcome = record(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments << outcome.output;
    EXPECT_THAT(outcome.output, Not(testing::IsEmpty())) << arguments;
  }
  EXPECT_EQ(record("--help").status, 0);
}

TEST_F(Record, RejectsADirectoryThatItCannotUse) {
  std::ofstream(directory_ / "file") << "x";
  const Outcome outcome = record("-o file -- true");
  EXPECT_EQ(outcome.status, 125);
  EXPECT_THAT(outcome.output, AllOf(StartsWith("paceline record: " + (directory_ / "file").string()),
                                    EndsWith("choose another directory with -o\n")));
}

TEST_F(Record, RejectsTheTracesOfAnotherRunUnlessForced) {
  const fs::path old = leave_trace("record-1");
  const Outcome refused = record("-o run -- true");
  EXPECT_EQ(refused.status, 125);
  EXPECT_EQ(refused.output, "paceline record: " + (directory_ / "run").string() +
                                " has traces of another run (old.pace); choose another directory with -o, or --force "
                                "to remove them\n");
  EXPECT_TRUE(fs::exists(old));
  std::ofstream(directory_ / "run" / "notes.txt") << "mine";
  const Outcome forced = record("-o run --force -- env");
  EXPECT_EQ(forced.status, 0);
  EXPECT_THAT(forced.output, HasSubstr("PACELINE_FORCE=1\n"));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(directory_ / "run" / "notes.txt"));
}

// Neither has a trace file yet.
TEST_F(Record, AcceptsOneOfTheJobsThatStartTogether) {
  std::ofstream(directory_ / "jobs.sh")
      << "for job in 1 2 3 4 5 6; do\n"
      << "  " RECORD_COMMAND
         " record $1 -o run -- sh -c 'echo >>accepted; until [ -e go ]; "
         "do sleep 0.05; done' || echo >>refused &\n"
      << "done\n"
      << "until [ $(cat accepted refused 2>/dev/null | wc -l) -ge 6 ]; do sleep 0.05; done\n"
      << "echo >go\nwait\nwc -l <accepted\n";
  for (const char* option : {"", "--force"}) {
    for (const char* file : {"accepted", "refused", "go"}) fs::remove(directory_ / file);
    const std::string line =
        "cd " + directory_.string() + " && env -i PATH=\"$PATH\" timeout 50 sh jobs.sh '" + option + "' 2>lines";
    FILE* pipe = popen(line.c_str(), "r");
    char accepted[64] = "";
    [[maybe_unused]] const char* read = fgets(accepted, sizeof accepted, pipe);
    pclose(pipe);
    EXPECT_EQ(std::string(accepted), "1\n") << option;
    std::ifstream lines(directory_ / "lines");
    const std::string said(std::istreambuf_iterator<char>(lines), {});
    EXPECT_THAT(said, HasSubstr("the directory of another run that has not ended")) << option;
  }
}

TEST_F(Record, AMarkerOfAJobThatHasEndedDoesNotBlock) {
  fs::create_directories(directory_ / "run");
  const fs::path marker = directory_ / "run" / ".paceline-job";
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::ofstream(marker) << "record-1\n" << host << " a-boot-that-is-over " << getpid() << " 1\n";
  EXPECT_EQ(record("-o run -- true").status, 0);
  std::ofstream(marker) << "record-1\nanother-host some-boot 1 1\n";
  const Outcome refused = record("-o run -- true");
  EXPECT_EQ(refused.status, 125);
  EXPECT_THAT(refused.output,
              HasSubstr("process 1 on another-host may still run; if it does not, remove " + marker.string()));
  fs::last_write_time(marker, fs::file_time_type::clock::now() - std::chrono::minutes(11));
  EXPECT_EQ(record("-o run -- true").status, 0);
}

TEST_F(Record, NeverRemovesAFileThatIsStillBeingRecorded) {
  const fs::path old = leave_trace("record-1");
  format::HeaderFacts facts;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  facts.host = host;
  facts.job = "record-1";
  facts.pid = static_cast<std::uint32_t>(getpid());
  format::write_trace_file(old, facts, {});
  constexpr std::streamoff closed = 116;  // in the header
  std::fstream(old, std::ios::in | std::ios::out | std::ios::binary).seekp(closed).write("\0\0\0\0", 4);
  const Outcome refused = record("-o run --force -- true");
  EXPECT_EQ(refused.status, 125);
  EXPECT_THAT(refused.output, HasSubstr("still being recorded"));
  EXPECT_TRUE(fs::exists(old));
}

TEST_F(Record, TheRanksOfOneJobShareADirectory) {
  leave_trace("openmpi-77-ab-cd");
  EXPECT_EQ(record("-o run -- true", open_mpi).status, 0);
  leave_trace("openmpi-77-ff-ff", "new.pace");  // the same name space, but another job
  EXPECT_EQ(record("-o run -- true", open_mpi).status, 125);
}

TEST_F(Record, WaitsForAFileWhoseHeaderAnotherRankIsAboutToWrite) {
  fs::create_directories(directory_ / "run");
  const fs::path file = directory_ / "run" / "r0.pace";
  std::ofstream(file) << std::string(4096, '\0');
  format::HeaderFacts facts;
  facts.job = "openmpi-77-ab-cd";
  format::write_trace_file(directory_ / "whole", facts, {});
  const Outcome outcome = record(
      "-o run -- true", "sh -c '(sleep 0.2; mv whole run/r0.pace) & exec \"$@\"' sh env " + std::string(open_mpi));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

}  // namespace
}  // namespace paceline::record
