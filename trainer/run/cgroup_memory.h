// How much memory the control groups of this process leave it: batch systems and containers give a job less than a host
// has.
#pragma once

#include <cstdint>
#include <filesystem>

namespace paceline::train {

// The least that a group, or one that it is in, has left, in bytes: its limit less its usage, of which cached files do
// not count, since they make room. All ones where nothing limits. Linux, Documentation/admin-guide/cgroup-v2.rst and
// cgroup-v1/memory.rst. groups, root: elsewhere for tests.
std::uint64_t cgroup_memory_left(const std::filesystem::path& groups = "/proc/self/cgroup",
                                 const std::filesystem::path& root = "/sys/fs/cgroup");

}  // namespace paceline::train
