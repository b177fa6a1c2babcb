// SPDX-License-Identifier: Apache-2.0
// Whether the process of a .pace file still records into it. Every part of Paceline asks here.
#pragma once

#include <string>

#include "profiler/format/trace_facts.h"

namespace paceline::format {

enum class Liveness {
  ended,     // the recorder closed the file, or its process is gone
  may_live,  // no other sign than that the file was renewed lately
  lives,     // its process runs
};

// Finds out from the first sign that applies:
//
// - The recorder closed the file: ended.
// - The process ran in this PID namespace (same boot and namespace; in older files, which do not name the namespace,
//   same boot and host): the process exists, or not.
// - The process ran in another PID namespace of this boot: it holds its lock on the file (recorder_lock.h): lives.
//   Without the lock it may live while the file's modification time is younger than 30 s, because a program may close
//   descriptors that it does not know.
// - It ran before this machine's last boot: ended.
// - Nothing else is known, as on another host or on a network file system: it may live while the file's modification
//   time is younger than ten minutes. Recorders renew it every minute at least.
//
// `facts.path` must name the file. Cost: a few system calls.
Liveness liveness_of(const TraceFacts& facts);

// The name of this machine, and the kernel's id of this boot ("unknown" without /proc).
std::string this_host();
std::string this_boot();

// True if the file changed within the last ten minutes.
bool is_fresh(const std::filesystem::path& path);

// True if the process exists in this process's PID namespace. `start` in clock ticks after boot; 0 = not known.
bool runs_in_this_namespace(int pid, std::uint64_t start);

}  // namespace paceline::format
