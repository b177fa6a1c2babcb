// SPDX-License-Identifier: Apache-2.0
// The processes that this one descends from.
//
// A worker may open its file before its parent does, and it may outlive its parent. Each process therefore notes its
// identity at its start and at each fork. The header of its file names its ancestors, and from these the reader finds
// the processes that belong together.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace paceline::inject {

// A process id is reused after its process has ended, and each PID namespace (a container) has ids of its own. The
// namespace, the id and the start time together are unique until the next boot.
struct ProcessName {
  pid_t pid = 0;                    // in its own PID namespace
  std::uint64_t start = 0;          // clock ticks after boot: field 22 of /proc/PID/stat (proc(5)); 0 = unknown
  std::uint64_t pid_namespace = 0;  // its inode; 0 = unknown
  pid_t shown = 0;                  // its id in /proc, which may be that of an outer namespace; 0 = unknown
};

inline constexpr int most_ancestors = 32;

struct Lineage {
  ProcessName self;
  ProcessName ancestors[most_ancestors];  // the parent first
  int ancestor_count = 0;
  // The number of nearest ancestors that are the same program and the same rank: one fork leads from each to the next,
  // without an exec. 0: this process was started as a program, or it got a rank of its own after the fork.
  int forked = 0;
};

// Called when the library is loaded. Cost: one read of /proc/self/stat, and one stat() of its PID namespace.
void start_lineage();

// Called in a forked child by the fork handler.
void note_fork();

// The lineage with all ancestors that can still be found. Called by the thread that opens the file, before it does.
const Lineage& complete_lineage();

// True for a fork of a process that still runs and has the same rank: a worker, not a daemon.
bool is_forked_worker();

}  // namespace paceline::inject
