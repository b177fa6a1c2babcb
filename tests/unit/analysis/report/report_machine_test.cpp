// SPDX-License-Identifier: Apache-2.0
// The findings from counters and facts are in the report where they hold, and only there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/report/build.h"
#include "analysis/report/sections.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct MachineRun {
  TraceBuilder run;
  RankBuilder& add_rank(int number, const char* cpus) {
    RankBuilder& rank = run.add_rank(number, 2);
    rank.info().host = "alice";
    rank.info().facts = {{"cpus_allowed", cpus}, {"cpus_online", "0-3"}, {"limit_open_files", "1024"}};
    return rank;
  }
  std::vector<std::string> findings() {
    std::vector<std::string> texts;
    std::vector<Finding> found;
    sections::machine().findings(analyse_run(run.finish(), "run"), found);
    for (const Finding& finding : found) {
      texts.push_back(std::string(severity_name(finding.severity)) + ": " + finding.text);
    }
    return texts;
  }
};

// `share` of one second.
void add_waiting(RankBuilder& rank, double share) {
  TrackBuilder& waiting = rank.add_counter("waiting for a CPU", "µs", "main thread", true);
  waiting.add_sample(0, 0);
  waiting.add_sample(500'000'000, share * 2e5);
  waiting.add_sample(1'000'000'000, share * 1e6);
}

TEST(MachineFindings, RanksThatShareACpu) {
  MachineRun job;
  add_waiting(job.add_rank(0, "0"), 0.4);
  add_waiting(job.add_rank(1, "0"), 0.5);
  EXPECT_THAT(
      job.findings(),
      ElementsAre("warning: Ranks 0 and 1 share CPU 0 of alice: more ranks than CPUs. Their main threads waited "
                  "45.0 % of the time for a CPU. Bind each rank to CPUs of its own, or to none (`mpirun --bind-to "
                  "none`)."));
}

void add_cgroup(RankBuilder& rank, const char* counter, double rise) {
  TrackBuilder& samples = rank.add_counter(counter, "", "cgroup", true);
  samples.add_sample(0, 7);
  samples.add_sample(1'000'000'000, 7 + rise);
}

TEST(MachineFindings, ACgroupThatKillsAndOneThatThrottles) {
  MachineRun job;
  RankBuilder &killed = job.add_rank(0, "0-1"), &throttled = job.add_rank(1, "2-3");
  killed.info().facts["cgroup_memory_bytes"] = "1073741824";
  add_cgroup(killed, "memory limit, OOM kills", 1);
  add_cgroup(killed, "memory limit, hits", 12);
  throttled.info().facts["cgroup"] = "/sys/fs/cgroup/job";
  throttled.info().facts["cgroup_cpus"] = "0.5";
  add_cgroup(throttled, "CPU limit, periods", 300);
  add_cgroup(throttled, "CPU limit, throttled periods", 240);
  add_cgroup(throttled, "CPU limit, throttled time", 14.2e6);
  add_cgroup(throttled, "memory limit, OOM kills", 0);
  EXPECT_THAT(
      job.findings(),
      ElementsAre(
          "problem: The cgroup of rank 0 reached its memory limit of 1 GiB, and the kernel killed 1 process in "
          "it. Raise the memory limit (`--memory`, `resources.limits.memory`, `--mem`), or use less memory.",
          "warning: The cgroup of rank 1 limits it to 0.5 CPUs: it was throttled in 240 of 300 periods, 14.20 s "
          "in all, added up over the CPUs. Raise the CPU limit (`--cpus` of docker, `resources.limits.cpu` of "
          "Kubernetes, `--cpus-per-task` of Slurm), or start fewer threads."));
}

TEST(MachineFindings, ACgroupThatHeldNobodyBack) {
  MachineRun job;
  RankBuilder& rank = job.add_rank(0, "0-1");
  rank.info().facts["cgroup_cpus"] = "4";
  add_cgroup(rank, "CPU limit, periods", 300);
  add_cgroup(rank, "CPU limit, throttled periods", 2);
  add_cgroup(rank, "memory limit, OOM kills", 0);
  EXPECT_THAT(job.findings(), IsEmpty());
}

TEST(MachineFindings, AMainThreadThatWaitsForACpu) {
  MachineRun job;
  add_waiting(job.add_rank(0, "0-1"), 0.23);
  add_waiting(job.add_rank(1, "2-3"), 0.04);
  EXPECT_THAT(
      job.findings(),
      ElementsAre("warning: The main thread of rank 0 was ready to run but waited 23.0 % of the time for a CPU: "
                  "more threads are ready to run than there are CPUs (CPUs 0-1 of alice). Give each rank fewer "
                  "threads, or give the job CPUs that no other program uses."));
}

TEST(MachineFindings, MainThreadsOfAHostThatWaitForACpuAreOneFinding) {
  MachineRun job;
  int rank = 0;
  for (const char* const cpu : {"0", "1", "2", "3"}) {
    add_waiting(job.add_rank(rank, cpu), 0.1 * rank);
    ++rank;
  }
  EXPECT_THAT(
      job.findings(),
      ElementsAre("warning: The main threads of ranks 1, 2 and 3 were ready to run but waited 10.0 % to 30.0 % of the "
                  "time for a CPU: more threads are ready to run than there are CPUs (on alice). Give each rank fewer "
                  "threads, or give the job CPUs that no other program uses."));
}

TEST(MachineFindings, AFewOpenFiles) {
  MachineRun job;
  job.add_rank(0, "0-1").info().facts["limit_open_files"] = "256";
  job.add_rank(1, "2-3").info().facts["limit_open_files"] = "unlimited";
  EXPECT_THAT(job.findings(),
              ElementsAre(::testing::StartsWith("warning: Rank 0 may open only 256 files (`ulimit -n`")));
}

TEST(MachineFindings, GpusThatAreSlowedDownOrFail) {
  MachineRun job;
  RankBuilder& rank = job.add_rank(0, "0-3");
  TrackBuilder& reasons = rank.add_counter("throttle reasons", "bits", "GPU 0", false);
  for (int i = 0; i < 10; ++i) reasons.add_sample(i, i < 2 ? 0x20 : 0x4);  // 0x4: a power cap, as at any full load
  rank.add_counter("throttle reasons", "bits", "GPU 1", false).add_sample(0, 0x4);
  rank.add_counter("XID error", "number", "GPU 1", false).add_sample(3, 79);
  EXPECT_THAT(
      job.findings(),
      ElementsAre("warning: GPU 0 of rank 0 on alice had its clocks slowed down for heat or power "
                  "in 20.0 % of its samples. Check its cooling and its power supply.",
                  "problem: GPU 1 of rank 0 on alice reported XID error 79. NVIDIA's list of XID errors explains "
                  "the number, and `dmesg` shows what else happened."));
}

TEST(MachineFindings, AnErrorOfAGpuThatRanksShareIsOne) {
  MachineRun job;
  for (int rank = 0; rank < 2; ++rank) {
    job.add_rank(rank, "0-3").add_counter("XID error", "number", "GPU 0", false).add_sample(3, 43);
  }
  EXPECT_THAT(job.findings(), ElementsAre(::testing::StartsWith(
                                  "problem: GPU 0 of ranks 0 and 1 on alice reported XID error 43. NVIDIA's list")));
}

TEST(MachineFindings, NothingWhereNothingIsWrongOrKnown) {
  MachineRun job;
  add_waiting(job.add_rank(0, "0-1"), 0.01);
  add_waiting(job.add_rank(1, "2-3"), 0);
  EXPECT_THAT(job.findings(), IsEmpty());
  MachineRun unknown;
  unknown.run.add_rank(0);
  EXPECT_THAT(unknown.findings(), IsEmpty());
}

TEST(MachineFindings, AreInTheReport) {
  MachineRun job;
  job.add_rank(0, "0").add_main_thread().add_slice(0, 10, "step");
  job.add_rank(1, "0").add_main_thread().add_slice(0, 10, "step");
  std::string all;
  for (const Finding& finding : build_report({analyse_run(job.run.finish(), "run")}).findings) all += finding.text;
  EXPECT_THAT(all, ::testing::HasSubstr("Ranks 0 and 1 share CPU 0"));
}

}  // namespace
}  // namespace paceline::analysis
