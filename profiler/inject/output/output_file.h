// The .pace file during the recording: it is created with its live area mapped, blocks are appended, and it is
// compacted at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "profiler/format/layout.h"
#include "profiler/inject/system/descriptor.h"

namespace paceline::inject {

struct OutputFile {
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

// Creates the file that the environment describes (record/environment.h) and maps it. Only the header and the first
// `units_at_start` units of the live area have space on the disk. Its time zero is
// `start_ticks` and `start_utc_ns`. On failure it reports the reason in one line, leaves no file and returns false.
bool create_output(OutputFile& file, std::uint32_t units_at_start, std::uint64_t start_ticks,
                   std::int64_t start_utc_ns);

// Makes the system allocate memory for a part of the live area now instead of at the first event there.
void populate(void* area, std::size_t bytes);

// True once another program has truncated the file. Safe in a signal handler.
bool file_is_cut();
// Ends the recording, because pages of the mapping are missing. Safe in a signal handler.
void note_that_file_is_cut();

// Appends a block and moves blocks_end. Returns false if the disk did not take it; the file is then unchanged. errno is
// EFBIG if the file has its largest size (--max-size), and ESTALE if another program has truncated it.
bool append_block(OutputFile& file, std::span<const std::byte> block);

// Updates the modification times of the file and of the job's marker, and takes the file's lock again. From these,
// other processes know that this one is still running (format/liveness.h). Writes to the mapping do not always update
// the times. Returns the number of seconds after which this is due again.
int renew_output(OutputFile& file);

// Closes the file. If all events are in blocks, a copy without the live area replaces the file. The copy lies in the
// output directory even if the file was staged. If the copy fails, the file is closed as it is, where it is. A file
// that was removed or truncated meanwhile stays as it is, and one line reports that. `quickly`: a long file is not
// copied and keeps an empty live area.
void close_output(OutputFile& file, bool all_written, bool quickly = false);

// Reserves disk space for a unit of the live area. Until then the unit is a hole of the file: it costs nothing, but on
// a full disk an access would end the program with SIGBUS. Returns 0 or the number of an error. Both functions are safe
// in a signal handler.
int allocate_live_area(OutputFile& file, std::uint32_t unit);
// Frees the disk space of empty chunks, which then read as zeros.
void punch_live_area(OutputFile& file, std::uint32_t first_chunk, std::uint32_t chunks);

// In a forked child: unmaps and closes the parent's file.
void release_output(OutputFile& file);

}  // namespace paceline::inject
