// SPDX-License-Identifier: Apache-2.0
// The limits of the process's control group: its CPUs and its memory, and how often the kernel enforced them.
// Containers and batch systems set them. Both versions of cgroups are known.
#pragma once

#include <cstddef>

namespace paceline::inject {

// Where a controller's files are.
struct CgroupFolder {
  char path[1024] = "";
  std::size_t mount_length = 0;  // of the path: the folder of the topmost group that this process can see
  bool v2 = false;
};

// Finds the folder of the process's group for a controller ("cpu", "memory"), from the texts of /proc/self/cgroup and
// /proc/self/mountinfo. Returns false if there is none.
bool find_cgroup(const char* groups, const char* mounts, const char* controller, CgroupFolder& folder);

// The limit in the text of cpu.max: in CPUs; 0 if there is none.
double cpus_in_max(const char* text);

// The number behind a key at the start of a line, as in cpu.stat and memory.events; 0 if it is not there.
unsigned long long value_of(const char* text, const char* key);

// Counters and facts, on the counter thread only.
void open_cgroup_counters();
void sample_cgroup();
void forget_cgroup_files();

}  // namespace paceline::inject
