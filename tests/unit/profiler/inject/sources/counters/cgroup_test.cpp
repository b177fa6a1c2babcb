// SPDX-License-Identifier: Apache-2.0
// Where the files of a control group are, from what real machines show in /proc.
#include "profiler/inject/sources/counters/cgroup.h"

#include <gtest/gtest.h>

#include <string>

namespace paceline::inject {
namespace {

std::string folder_of(const char* groups, const char* mounts, const char* controller) {
  CgroupFolder folder;
  if (!find_cgroup(groups, mounts, controller, folder)) return "none";
  return std::string(folder.v2 ? "2 " : "1 ") + std::string(folder.path).insert(folder.mount_length, "|");
}

constexpr const char* mounts_v1 =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

TEST(Cgroup, OfVersion1IsBelowTheMountOfItsController) {
  // Slurm's task/cgroup on a host with both versions.
  const char* groups =
      "0::/system.slice/slurmd.service\n"
      "4:memory:/slurm/uid_1000/job_7/step_0\n"
      "2:cpu,cpuacct:/slurm/uid_1000/job_7/step_0\n";
  EXPECT_EQ(folder_of(groups, mounts_v1, "cpu"), "1 /sys/fs/cgroup/cpu,cpuacct|/slurm/uid_1000/job_7/step_0");
  EXPECT_EQ(folder_of(groups, mounts_v1, "memory"), "1 /sys/fs/cgroup/memory|/slurm/uid_1000/job_7/step_0");
  EXPECT_EQ(folder_of("2:cpu,cpuacct:/\n", mounts_v1, "cpu"), "1 /sys/fs/cgroup/cpu,cpuacct|");
}

TEST(Cgroup, OfAContainerIsTheRootThatItSees) {
  // Docker without a cgroup namespace: the group's path is the host's, and the mount shows only what is below it.
  const char* mounts = "97 95 0:29 /docker/4f2a /sys/fs/cgroup/cpu ro,nosuid master:9 - cgroup cgroup rw,cpu,cpuacct\n";
  EXPECT_EQ(folder_of("3:cpu,cpuacct:/docker/4f2a\n", mounts, "cpu"), "1 /sys/fs/cgroup/cpu|");
  EXPECT_EQ(folder_of("3:cpu,cpuacct:/docker/4f2a/job\n", mounts, "cpu"), "1 /sys/fs/cgroup/cpu|/job");
  EXPECT_EQ(folder_of("3:cpu,cpuacct:/elsewhere\n", mounts, "cpu"), "1 /sys/fs/cgroup/cpu|");
  // Kubernetes with version 2.
  const char* unified = "1012 1005 0:26 / /sys/fs/cgroup ro,nosuid,nodev - cgroup2 cgroup rw,nsdelegate\n";
  EXPECT_EQ(folder_of("0::/\n", unified, "cpu"), "2 /sys/fs/cgroup|");
  EXPECT_EQ(folder_of("0::/user.slice/job_7\n", unified, "memory"), "2 /sys/fs/cgroup|/user.slice/job_7");
}

TEST(Cgroup, IsNoneWithoutAMountOrALine) {
  EXPECT_EQ(folder_of("", mounts_v1, "cpu"), "none");
  EXPECT_EQ(folder_of("0::/\n", "", "cpu"), "none");
  EXPECT_EQ(folder_of("broken", "broken\n\n- - -", "cpu"), "none");
}

TEST(Cgroup, FilesAreParsed) {
  EXPECT_EQ(cpus_in_max("max 100000"), 0);
  EXPECT_EQ(cpus_in_max("50000 100000"), 0.5);
  EXPECT_EQ(cpus_in_max(""), 0);
  const char* stat = "usage_usec 5\nnr_periods 300\nnr_throttled 240\nthrottled_usec 14200000";
  EXPECT_EQ(value_of(stat, "nr_periods"), 300u);
  EXPECT_EQ(value_of(stat, "nr_throttled"), 240u);
  EXPECT_EQ(value_of(stat, "throttled_usec"), 14'200'000u);
  EXPECT_EQ(value_of("low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n", "oom_kill"), 5u);
  EXPECT_EQ(value_of(stat, "throttled_time"), 0u);
}

}  // namespace
}  // namespace paceline::inject
