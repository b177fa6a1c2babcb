// SPDX-License-Identifier: Apache-2.0
// Makes the first bytes of a .pace file: FileHeader, JSON text, zeros up to a whole page.
//
// Used inside the recorded program: libc and xxhash only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/format/layout.h"

namespace paceline::format {

// A list of texts in the form of /proc/self/cmdline: each ends with a zero byte.
struct ZeroSeparated {
  const char* bytes = nullptr;
  std::size_t size = 0;
};

struct HeaderFacts {
  std::uint64_t file_id = 0;
  ClockSource clock_source = ClockSource::tsc;
  std::uint32_t pid = 0;
  double ticks_per_second = 0;
  std::uint64_t start_ticks = 0;
  std::int64_t start_utc_ns = 0;
  std::int64_t process_start_utc_ns = 0;
  std::int32_t rank = -1;
  std::int32_t world_size = -1;
  std::int32_t local_rank = -1;
  std::uint64_t live_bytes = 0;
  const char* host = "";
  const char* boot_id = "";  // "" or null, here and below: the member is omitted
  ZeroSeparated command{};   // arguments beyond 64 KiB are replaced by one "…"
  const char* directory = "";
  const char* job = "";
  const char* launch = "";          // the start by mpirun or srun within the job
  const char* parent = "";          // process id of the recorded process that this one is a child of
  std::uint64_t process_start = 0;  // clock ticks after boot, proc(5)'s starttime; 0 = not known
  std::uint64_t pid_namespace = 0;  // inode of its PID namespace; 0 = not known
  int heartbeat_s = 0;              // the recorder renews the modification time this often; 0 = not at all
  ZeroSeparated ancestors{};        // each PID:START or PID:START:NAMESPACE, the parent first
  int forked = 0;                   // number of the nearest ancestors that this process was forked from
  ZeroSeparated environment{};      // each NAME=VALUE
  const char* set = "";             // lines KEY=VALUE; of equal keys the last counts
  std::int64_t utc_error_us = -1;   // bound of the error of CLOCK_REALTIME, as the system reports it; -1 = not known
};

// Writes the header into `out` and returns its length, a multiple of page_bytes, which is also header_bytes; 0 if it
// does not fit into `capacity` (max_header_bytes always suffices for texts below 100 KiB in all). Bytes that are not
// UTF-8 become U+FFFD. blocks_end is set to header_bytes + live_bytes.
std::size_t make_header(const HeaderFacts& facts, void* out, std::size_t capacity) noexcept;

}  // namespace paceline::format
