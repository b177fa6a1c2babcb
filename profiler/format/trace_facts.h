// SPDX-License-Identifier: Apache-2.0
// What a .pace file contains beside its events: the header and its text, the stretches of lost events, the damage.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "profiler/format/layout.h"

namespace paceline::format {

// Events of a track that are not in the file, because the recorder dropped them or their block is damaged. Other events
// of the same time may be in the file.
struct LostStretch {
  std::uint32_t track = 0;
  std::uint64_t thread_id = 0;
  std::uint64_t first_ticks = 0, last_ticks = 0;  // relative, as in events
  std::uint64_t events = 0;                       // 0 = not known
  std::uint32_t cause = 0;                        // DropCause, or lost_by_damage
  bool any_thread = false;                        // the threads are not known; `track` means nothing
};
inline constexpr std::uint32_t lost_by_damage = 255;

struct TraceFacts {
  std::filesystem::path path;
  FileHeader header{};
  std::uint64_t interrupted = 0;  // events dropped by DropCause::interrupted
  std::string host, boot_id, directory, job;
  std::string launch;               // the start by mpirun or srun within the job; "" = not known
  std::string parent;               // process id of the recorded process that this one is a child of; "" if it is none
  std::uint64_t process_start = 0;  // clock ticks after the boot; 0 = not known
  std::uint64_t pid_namespace = 0;  // inode of its PID namespace; 0 = not known
  int heartbeat_s = 0;              // the recorder renews the modification time this often; 0 = not known
  // PID:START, the parent first; PID:START:NAMESPACE for one in another PID namespace
  std::vector<std::string> ancestors;
  int forked = 0;                  // number of the nearest ancestors that the process was forked from
  std::int64_t utc_error_us = -1;  // how far CLOCK_REALTIME may have been from UTC at the start; -1 = not known
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> set;  // what `paceline record --set` described
  std::vector<LostStretch> lost;           // by track and time; may name a track that has no events in the file
  bool damaged = false;                    // the file is cut, or a checksum does not fit; the rest was read
  std::string damage;                      // where and what, in one line, for people
};

}  // namespace paceline::format
