// The .pace file while it is recorded: made with its live area mapped, blocks appended, compacted at the end.
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
  char directory[4096] = "";  // where it belongs; `path` is elsewhere while it is staged
  bool staged = false;
  bool may_outgrow = false;              // --max-size does not count any more: the live area is about to go
  format::FileHeader* header = nullptr;  // mapped; the live area follows at header_bytes
  std::byte* live = nullptr;
  std::uint32_t chunks = 0;        // units of the live area (chunks.h)
  std::uint64_t job = 0;           // hash of the job's identity
  std::uint64_t clock_domain = 0;  // hash of host name and boot id: equal where the clock is the same

  std::size_t mapped_bytes() const {
    return static_cast<std::size_t>(live - reinterpret_cast<const std::byte*>(header)) +
           std::size_t{chunks} * format::chunk_bytes;
  }
  // A chunk, by the number of its first page.
  format::ChunkHeader* chunk_at(std::uint32_t page) const {
    return reinterpret_cast<format::ChunkHeader*>(live + std::size_t{page} * format::page_bytes);
  }
};

// Makes the file as the environment says (record/environment.h), preallocated and mapped. Its zero is
// `start_ticks` and `start_utc_ns`. On failure it says why in one line, leaves nothing behind and returns false.
bool create_output(OutputFile& file, std::uint64_t start_ticks, std::int64_t start_utc_ns);

// Makes the system give memory to a part of the live area now, instead of at the first event there.
void populate(void* area, std::size_t bytes);

// True once another program has cut the file short. Safe in a signal handler.
bool file_is_cut();
// Ends the recording, because pages of the mapping are missing. Safe in a signal handler.
void note_that_file_is_cut();

// Appends a block and moves blocks_end. False if the disk did not take it; the file is then as before. errno EFBIG: it
// has its largest size (--max-size); ESTALE: somebody else has cut it short.
bool append_block(OutputFile& file, std::span<const std::byte> block);

// Closes the file. Where all events are in blocks it is replaced by a copy without the live area, which lies in its
// directory even if the file was staged; where that fails the file is closed as it is and where it is.
// A file that was removed or cut short meanwhile stays as it is, and one line says so.
// `quickly`: a long file is not copied, and keeps an area without contents.
void close_output(OutputFile& file, bool all_written, bool quickly = false);

// Gives the disk's space for chunks that hold nothing back; they read as zeros then. Safe in a signal handler, as the
// next one is.
void punch_live_area(OutputFile& file, std::uint32_t first_chunk, std::uint32_t chunks);
// Reserves it again; false if the disk is full.
bool restore_live_area(OutputFile& file);

// In a forked child: lets go of the parent's file.
void release_output(OutputFile& file);

}  // namespace paceline::inject
