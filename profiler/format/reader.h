// Reads a .pace file, whole or damaged, from a running, ended or killed process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "profiler/format/event.h"
#include "profiler/format/layout.h"

namespace paceline::format {

struct Track {
  std::uint32_t id = 0;
  std::uint64_t thread_id = 0;
  std::vector<Slot> slots;  // heads with their extension slots, in the order written
};

// Events of a track that are not in the file, because the recorder dropped them or their block is damaged. Others of
// the same time may be there.
struct LostStretch {
  std::uint32_t track = 0;
  std::uint64_t thread_id = 0;
  std::uint64_t first_ticks = 0, last_ticks = 0;  // relative, as in events
  std::uint64_t events = 0;                       // 0 = not known
  std::uint32_t cause = 0;                        // DropCause, or lost_by_damage
  bool any_thread = false;                        // of threads that are not known; `track` means nothing
};
inline constexpr std::uint32_t lost_by_damage = 255;

struct TraceFile {
  std::filesystem::path path;
  FileHeader header{};
  std::string host, boot_id, directory, job;
  std::string parent;              // process id of the recorded process that this one is a child of; "" if it is none
  std::uint64_t process_start = 0;     // clock ticks after the boot; 0 = not known
  std::vector<std::string> ancestors;  // PID:START, the parent first
  int forked = 0;                      // number of the nearest ancestors that the process was forked from
  std::int64_t utc_error_us = -1;  // how far CLOCK_REALTIME may have been from UTC at the start; -1 = not known
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> set;  // what `paceline record --set` described
  std::vector<Track> tracks;               // by id
  std::vector<LostStretch> lost;           // by track and time; a track of which nothing is there may be among them
  bool damaged = false;                    // cut, or a checksum does not fit; the rest was read
  std::string damage;                      // where and what, one line, for people
};

// True if the file starts as a .pace file does. Costs one read of 8 bytes.
bool is_trace_file(const std::filesystem::path& path);

// Throws Error where not even a header can be read. Damage after the header is no error: what can be read is returned,
// with `damaged` set. A process that still runs, or was killed, left no damage (header.closed tells). Every byte may be
// hostile. Of a running process, whole events up to some moment during the call are returned. Cost: linear in the file.
TraceFile read_trace_file(const std::filesystem::path& path);

// What each block and live chunk holds, without decoding the blocks (those of version 1, which say nothing, are
// decoded). The checksums are checked. In the order of the file, blocks first; payload_bytes and hash of live chunks
// are 0. Throws Error as above.
struct TraceSummary {
  FileHeader header{};
  std::vector<BlockHeader> chunks;
  bool damaged = false;
  std::string damage;
};
TraceSummary read_trace_summary(const std::filesystem::path& path);

// The header alone, without tracks. Throws Error as above. Costs two small reads.
TraceFile read_trace_header(const std::filesystem::path& path);

}  // namespace paceline::format
