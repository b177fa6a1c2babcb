// SPDX-License-Identifier: Apache-2.0
// The .pace file as a mapping: its header and its live area, where threads write their events.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/format/layout.h"
#include "profiler/inject/system/descriptor.h"

namespace paceline::inject {

struct MappedFile {
  KeptDescriptor descriptor;
  char path[4096] = "";
  char directory[4096] = "";  // the output directory; `path` is elsewhere while the file is staged
  bool staged = false;
  bool may_outgrow = false;              // --max-size does not apply any more, because the live area will be removed
  format::FileHeader* header = nullptr;  // mapped; the live area follows at header_bytes
  std::byte* live = nullptr;
  std::uint32_t chunks = 0;  // units of the live area (chunks.h)
  std::uint64_t job = 0;     // hash of the job's identity
  std::uint64_t clock_domain =
      0;  // hash of host name, boot id and clock source: equal for processes with the same clock

  std::size_t mapped_bytes() const {
    return static_cast<std::size_t>(live - reinterpret_cast<const std::byte*>(header)) +
           std::size_t{chunks} * format::chunk_bytes;
  }
  // The header's counter of events that were dropped for this reason.
  std::uint64_t& dropped(format::DropCause cause) const {
    const auto index = static_cast<std::uint32_t>(cause);
    if (index < format::drop_causes) return header->dropped[index];
    auto* const end = reinterpret_cast<std::byte*>(header) + header->header_bytes;
    return reinterpret_cast<std::uint64_t*>(end - format::late_counters_bytes)[index - format::drop_causes];
  }
  // The chunk with this number, which is that of its first page.
  format::ChunkHeader* chunk_at(std::uint32_t page) const {
    return reinterpret_cast<format::ChunkHeader*>(live + std::size_t{page} * format::page_bytes);
  }
};

// Makes the system allocate memory for a part of the live area now instead of at the first event there.
void populate(void* area, std::size_t bytes);

// True once another program has truncated the file. Safe in a signal handler.
bool file_is_cut();
// Ends the recording, because pages of the mapping are missing. Safe in a signal handler.
void note_that_file_is_cut();

inline constexpr unsigned file_mode = 0644;  // to be cut by the user's umask

// Opens a file for reading and writing under a number that no daemon's standard stream gets: descriptors 0 to 2 may be
// free, and the program's own output must never end up in the trace. Returns -1 if it fails.
int open_above_standard_streams(const char* path, int flags);

// True if the descriptor still means the trace file. Opens the file again if the program closed it. Without this check
// blocks could end up in a file of the program.
bool is_ours(MappedFile& file);

// True once the file is shorter than its mapping, which ends the recording. Every block lies behind the mapping.
bool was_cut(const MappedFile& file);

// Reserves disk space of the file. Returns 0 or the number of an error.
int reserve_space(const MappedFile& file, std::uint64_t from, std::uint64_t bytes);

// Reserves disk space for a unit of the live area. Until then the unit is a hole of the file: it costs nothing, but on
// a full disk an access would end the program with SIGBUS. Returns 0 or the number of an error. Both functions are safe
// in a signal handler.
int allocate_live_area(MappedFile& file, std::uint32_t unit);
// Frees the disk space of empty chunks, which then read as zeros.
void punch_live_area(MappedFile& file, std::uint32_t first_chunk, std::uint32_t chunks);

// In a forked child: unmaps and closes the parent's file.
void release_output(MappedFile& file);

}  // namespace paceline::inject
