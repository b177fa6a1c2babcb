// SPDX-License-Identifier: Apache-2.0
// The memory that the control groups of this process leave to it: batch systems and containers give a job less than the
// host has.
#pragma once

#include <cstdint>
#include <filesystem>

namespace paceline::train {

// The least memory in bytes that this process's group or one of its parents has left: its limit minus its usage without
// cached files, which the kernel can drop. All bits are set if there is no limit. Linux,
// Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst. groups, root: paths, which tests replace.
std::uint64_t cgroup_memory_left(const std::filesystem::path& groups = "/proc/self/cgroup",
                                 const std::filesystem::path& root = "/sys/fs/cgroup");

}  // namespace paceline::train
