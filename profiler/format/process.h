// SPDX-License-Identifier: Apache-2.0
// A process as the system shows it in /proc: its start, its parent and its PID namespace.
//
// libc only: used inside the recorded program too. No function allocates memory or takes a lock.
#pragma once

#include <cstdint>

namespace paceline::format {

// A process in /proc/PID/stat (proc(5)).
struct ProcessStatus {
  int pid = 0;              // here and below: as this /proc shows it, which may be that of an outer PID namespace
  int parent = 0;           // 0: the parent is in a PID namespace that this /proc does not show
  char name[16] = "";       // of its program, at most 15 characters
  bool has_ended = false;   // a zombie, whose parent has not read its exit status yet
  std::uint64_t start = 0;  // clock ticks after boot; distinguishes it from an earlier process with the same id
};

// The process with this id in /proc. Returns false if there is none.
bool read_process(int pid, ProcessStatus& status) noexcept;

// This process, also in a PID namespace whose /proc was not mounted anew. Returns false if /proc is missing.
bool read_own_process(ProcessStatus& status) noexcept;

// The inode of this process's PID namespace: with the boot, process id and start time, it names a process. 0 = unknown.
std::uint64_t pid_namespace() noexcept;

// The id of a process of /proc inside its own PID namespace, and how many namespaces below that of /proc it lies
// (`depth`, 0 = it is in that of /proc). Returns 0 if there is no such process, or if the system does not show it.
// `process` is a process id as text, or "self".
int pid_inside(const char* process, int& depth) noexcept;

// True if /proc shows the PID namespace of this process, so that process ids mean the same in both.
bool proc_shows_own_pids() noexcept;

}  // namespace paceline::format
