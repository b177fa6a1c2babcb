// SPDX-License-Identifier: Apache-2.0
#include "profiler/launch/launcher.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>

#include "profiler/launch/file_name.h"

namespace paceline::record {
namespace {

using Variables = std::map<std::string, std::string>;

// Sets these variables and removes those of all other launchers.
void set_only(const Variables& variables) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK",
                           "OMPI_COMM_WORLD_SIZE",
                           "OMPI_COMM_WORLD_LOCAL_RANK",
                           "PMI_RANK",
                           "PMI_SIZE",
                           "MPI_LOCALRANKID",
                           "RANK",
                           "WORLD_SIZE",
                           "LOCAL_RANK",
                           "LOCAL_WORLD_SIZE",
                           "SLURM_PROCID",
                           "SLURM_STEP_NUM_TASKS",
                           "SLURM_LOCALID",
                           "SLURM_JOB_ID",
                           "SLURM_STEP_ID",
                           "PMIX_RANK",
                           "PMIX_NAMESPACE",
                           "OMPI_MCA_ess_base_jobid",
                           "OMPI_MCA_orte_precondition_transports",
                           "TORCHELASTIC_RUN_ID",
                           "TORCHELASTIC_RESTART_COUNT",
                           "MASTER_ADDR",
                           "MASTER_PORT",
                           "PBS_JOBID",
                           "LSB_JOBID",
                           "PACELINE_JOB"}) {
    unsetenv(name);
  }
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
}

std::string job(const Variables& variables) {
  set_only(variables);
  char out[256];
  const std::size_t length = job_identity(out, sizeof out);
  EXPECT_EQ(length, std::string(out).size());
  return out;
}

void expect_rank(const Variables& variables, int rank, int world_size, int local_rank) {
  set_only(variables);
  const LaunchedRank found = launched_rank();
  EXPECT_EQ(found.rank, rank);
  EXPECT_EQ(found.world_size, world_size);
  EXPECT_EQ(found.local_rank, local_rank);
}

TEST(Launcher, FindsTheRankUnderEachLauncher) {
  expect_rank({}, -1, -1, -1);
  expect_rank({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}, 3, 4,
              1);
  expect_rank({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}}, 3, 4, 1);
  expect_rank({{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}}, 3, 4, 1);
  expect_rank({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_LOCALID", "1"}}, 3, 4, 1);
  expect_rank({{"PMIX_RANK", "3"}}, 3, -1, -1);
}

TEST(Launcher, PrefersMpirunInsideASlurmBatchStep) {
  expect_rank({{"SLURM_PROCID", "0"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}, 1, 2, -1);
}

TEST(Launcher, IgnoresValuesThatAreNotARank) {
  expect_rank({{"RANK", "7"}}, -1, -1, -1);  // a variable of the user, not of torchrun
  expect_rank({{"PMI_RANK", "x"}}, -1, -1, -1);
  expect_rank({{"PMI_RANK", "-1"}}, -1, -1, -1);
  expect_rank({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}, -1, -1, -1);
  expect_rank({{"PMI_RANK", "99999999999"}, {"PMI_SIZE", ""}}, -1, -1, -1);
}

TEST(Launcher, FindsTheJobUnderEachLauncher) {
  EXPECT_EQ(job({}), "");
  EXPECT_EQ(job({{"PACELINE_JOB", "mine"}, {"SLURM_JOB_ID", "1"}, {"SLURM_STEP_ID", "0"}}), "mine");
  EXPECT_EQ(job({{"OMPI_COMM_WORLD_RANK", "0"},
                 {"PMIX_NAMESPACE", "99"},
                 {"OMPI_MCA_orte_precondition_transports", "a-b"},
                 {"SLURM_JOB_ID", "1"},
                 {"SLURM_STEP_ID", "0"}}),
            "openmpi-99-a-b");
  EXPECT_EQ(job({{"SLURM_JOB_ID", "12"}, {"SLURM_STEP_ID", "3"}}), "slurm-12.3");
  EXPECT_EQ(job({{"PMIX_NAMESPACE", "x"}}), "pmix-x");
  EXPECT_EQ(job({{"PMI_RANK", "0"}, {"PBS_JOBID", "5.host"}}), "batch-5.host");
  EXPECT_EQ(job({{"TORCHELASTIC_RUN_ID", "u1"}, {"RANK", "0"}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}}),
            "torchrun-u1-n1-29500");
}

TEST(Launcher, EachAttemptOfTorchrunIsAStartOfItsOwn) {
  const auto start = [](const char* restarts) {
    set_only({{"TORCHELASTIC_RUN_ID", "none"}, {"TORCHELASTIC_RESTART_COUNT", restarts}, {"RANK", "0"}});
    char out[100];
    launch_identity(out, sizeof out);
    return std::string(out);
  };
  EXPECT_EQ(start("0"), "torchrun-none-.0");
  EXPECT_EQ(start("1"), "torchrun-none-.1");
}

TEST(Launcher, UsesTheParentProcessIfTheLauncherNamesNoJob) {
  const Variables torchrun = {
      {"TORCHELASTIC_RUN_ID", "none"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}};
  const std::string first = job(torchrun);
  EXPECT_EQ(first.rfind("torchrun-", 0), 0U);
  EXPECT_NE(first.find(std::to_string(getppid())), std::string::npos);
  EXPECT_EQ(job(torchrun), first);
  EXPECT_EQ(job({{"PMI_RANK", "0"}}).rfind("pmi-", 0), 0U);
}

TEST(Launcher, CutsAJobNameToTheCapacity) {
  set_only({{"PACELINE_JOB", "0123456789"}});
  char out[5];
  EXPECT_EQ(job_identity(out, sizeof out), 4U);
  EXPECT_STREQ(out, "0123");
}

std::string expand(const char* pattern, std::size_t capacity = 100) {
  setenv("PACELINE_TEST_VARIABLE", "a/b", 1);
  char out[100] = "untouched";
  const std::size_t length = expand_file_name(pattern, {"node1", 3, 42}, out, capacity);
  return length > 0 ? std::string(out, length) : "";
}

TEST(FileName, ReplacesEachPlaceholder) {
  EXPECT_EQ(expand("%h-r%r-p%p.pace"), "node1-r3-p42.pace");
  EXPECT_EQ(expand("%q{PACELINE_TEST_VARIABLE}%%%q{PACELINE_NOT_SET}x"), "a_b%x");
  char out[20];
  ASSERT_GT(expand_file_name("r%r", {"h", -1, 0}, out, sizeof out), 0U);
  EXPECT_STREQ(out, "rx");
}

TEST(FileName, RejectsPatternsThatItCannotExpand) {
  for (const char* pattern : {"", "%", "a%", "%x", "%q", "%q{", "%q{A", "%q{}"})
    EXPECT_EQ(expand(pattern), "") << pattern;
  EXPECT_EQ(expand("12345", 6), "12345");
  EXPECT_EQ(expand("12345", 5), "");
}

}  // namespace
}  // namespace paceline::record
