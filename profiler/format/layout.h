// SPDX-License-Identifier: Apache-2.0
// The .pace file on disk: header, live area, blocks.
//
//   [ header, a multiple of 4096 bytes ][ live area: chunks, while recording ][ blocks … ]
//
// While a process records, its threads write events into chunks of the live area, a shared file mapping. Events in the
// mapping survive the process, however it ends. The drain compresses a full chunk into a block at the end of the file
// and uses the chunk again. A closed file has all events in blocks. It has no live area (live_bytes = 0: the closed
// file is a copy that replaced the first one), or, if there was no room for a copy, a live area of free chunks. A
// reader takes the blocks, and the live chunks that no block holds yet (by sequence).
//
// All integers are little-endian. docs/trace-format.md is the full text.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace paceline::format {

inline constexpr char file_magic[8] = {'P', 'A', 'C', 'E', 'L', 'I', 'N', 'E'};
inline constexpr std::uint32_t file_version = 2;         // what the recorder writes
inline constexpr std::uint32_t oldest_file_version = 1;  // what a reader still reads
inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::size_t chunk_bytes = 64 * 1024;
inline constexpr std::size_t pages_per_chunk = chunk_bytes / page_bytes;
inline constexpr std::size_t max_header_bytes = 1024 * 1024;
inline constexpr std::size_t max_live_bytes = std::size_t{1} << 30;

// The longest plausible age of a process when its recording begins. A larger age comes from a clock that was set
// meanwhile.
inline constexpr std::int64_t longest_process_age_ns = 366LL * 86'400 * 1'000'000'000;

enum class ClockSource : std::uint32_t { tsc = 1, monotonic_raw = 2 };

// Why an event was not recorded. The header has a counter for each cause.
enum class DropCause : std::uint32_t {
  no_free_chunk = 0,
  too_long = 1,
  too_many_names = 2,  // recorded, but under one common name
  disk = 3,
  ring = 4,         // the flight recorder's memory was too small for the time that --ring asks for
  device = 5,       // CUPTI found no buffer for its records, or left some out itself
  payload_cut = 6,  // recorded, but without a part of its NVTX payloads
  interrupted = 7,  // a signal handler emitted it in the middle of another event, or while the file was opened
};
inline constexpr std::size_t drop_causes = 7;  // those that FileHeader::dropped counts

// The last bytes of the header, behind the text: u64 counters of the later causes, from 7 on, which change during the
// recording. Files of earlier recorders have zeros there, or a text that leaves no room for the counters.
inline constexpr std::size_t late_counters_bytes = 64;

// The first bytes of the file. Fields marked * change during the recording, by one aligned store each; `hash` covers
// the others.
struct FileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;  // offset of the live area; a multiple of page_bytes, at most max_header_bytes
  std::uint64_t file_id;       // random: equal only in copies of one recording
  ClockSource clock_source;
  std::uint32_t pid;
  double ticks_per_second;            // nominal, for a first reading; the clock pairs give the exact one
  std::uint64_t start_ticks;          // absolute; events count from it
  std::int64_t start_utc_ns;          // CLOCK_REALTIME at start_ticks
  std::int64_t process_start_utc_ns;  // when the system started the process; 0 = not known
  std::uint32_t text_bytes;           // length of the JSON text that follows this struct
  std::uint32_t reserved;             // 0
  std::uint64_t text_hash;            // XXH3 64 of it
  std::uint64_t hash;                 // XXH3 64 of the bytes before this field
  std::uint64_t live_bytes;           // * length of the live area, a multiple of chunk_bytes, at most max_live_bytes;
                                      //   0 = there is none, or none any more
  std::uint64_t blocks_end;           // * offset of the end of the last whole block. The recorder appends a block, then
                                      //   stores this, then sets the chunk free. It starts as header_bytes +
                                      //   live_bytes. In a closed file it is the file's length.
  std::int32_t rank;                  // * -1 = not known
  std::int32_t world_size;            // * -1 = not known
  std::int32_t local_rank;            // * -1 = not known
  std::uint32_t closed;               // * 1 = closed by the recorder, 0 = the process runs, or ended without closing it
  std::uint64_t dropped[drop_causes];  // * events not recorded, by DropCause
  std::uint64_t kept_from;  // * flight recorder: events before this tick may have been dropped for later ones;
                            //   0 = no event was dropped
};
static_assert(sizeof(FileHeader) == 184);
// JSON text: {"host","boot_id","command":[…],"directory","job","launch","parent","start","pid_namespace","heartbeat_s",
// "ancestors":[…],"forked","environment":{…},"set":{…}}; all but host are optional.

// The drain sets a chunk free before it zeroes it. A thread opens it afterwards (sequence, then state).
enum class ChunkState : std::uint32_t { free = 0, open = 1, full = 2, lost_table = 3 };

// The first bytes of each chunk of the live area. Slots follow to the chunk's end.
//
// The live area is an array of units of chunk_bytes. A unit is one chunk, or it is divided into chunks of one page
// each: `pages` in the header of its first page says which. The first chunk of a thread is a page, so that thousands of
// threads with few events fit. A unit is divided, and made whole again, only while all of it is free and zeroed.
struct ChunkHeader {
  std::uint32_t state;      // * ChunkState
  std::uint32_t track;      // which thread's: dense from 0, in order of first event
  std::uint64_t sequence;   // number of this chunk in the file, from 1, in order of opening
  std::uint64_t thread_id;  // the system's
  std::uint32_t pages;      // * 1: a chunk of one page, in a divided unit; 0: a whole unit. Version 1 has only 0.
  std::uint32_t reserved0;
  std::uint64_t reserved[4];
};
static_assert(sizeof(ChunkHeader) == 64);

inline constexpr std::size_t slots_per_chunk = (chunk_bytes - sizeof(ChunkHeader)) / 16;
inline constexpr std::size_t slots_per_page = (page_bytes - sizeof(ChunkHeader)) / 16;

// A stretch in which events of a track are dropped. The recorder updates it while it lasts, so that it survives a kill.
// Once its thread has a chunk again, the recorder writes an event `lost` with the same values and clears the entry.
// Entries fill a unit of state lost_table after its header.
struct LostEntry {
  std::uint64_t events;       // * 0 = ignore the entry; stored last
  std::uint64_t first_ticks;  // * relative, as in events
  std::uint64_t last_ticks;   // *
  std::uint64_t thread_id;    // the system's
  std::uint32_t track;
  std::uint32_t cause;  // as in the event: DropCause:8 | LostScope:8
  std::uint64_t reserved[3];
};
static_assert(sizeof(LostEntry) == 64);
inline constexpr std::size_t lost_entries = (chunk_bytes - sizeof(ChunkHeader)) / sizeof(LostEntry);

// The counts in a block's header. `other` counts all events of no other family, ends of ranges included.
enum class Family : std::uint8_t { nvtx, mpi, cuda, nccl, counter, other };
inline constexpr std::size_t families = 6;

// The contents of a block that decide whether a reader needs it.
enum BlockContent : std::uint32_t {
  has_definitions = 1,  // types 1 to 15, and others that later events refer to
  has_settings = 2,     // setting, recording, trigger, process_end
  has_clock = 4,        // clock_pair, clock_exchange, cuda_clock, time_sync
  has_lost = 8,         // lost
};

// The header of a block. Blocks of version 1 have a shorter one, of kind 1, without the summary.
struct BlockHeader {
  char magic[4];       // "PBLK"
  std::uint32_t kind;  // 1 = events of one chunk, without a summary; 2 = with it
  std::uint32_t track;
  std::uint32_t slots;     // slots in the payload, once decoded
  std::uint64_t sequence;  // the chunk's
  std::uint64_t thread_id;
  std::uint32_t payload_bytes;  // as stored
  std::uint32_t raw_bytes;      // before compression
  // The summary.
  std::uint64_t first_ticks;      // the lowest ticks of its events
  std::uint64_t last_ticks;       // the highest ticks; for an event with a duration, those of its end
  std::uint16_t count[families];  // events by Family
  std::uint32_t contents;         // BlockContent
  std::uint64_t hash;  // XXH3 64 of the payload as stored, seeded with the XXH3 64 of the bytes before this field
};
static_assert(sizeof(BlockHeader) == 80);

// The bytes of a header of kind 1: those before the summary, then the hash.
inline constexpr std::size_t short_block_header_bytes = offsetof(BlockHeader, first_ticks) + sizeof(std::uint64_t);
static_assert(short_block_header_bytes == 48);

// Limits that a reader may rely on: a decoded block has at most slots_per_chunk slots.
inline constexpr std::size_t max_raw_bytes = 2 * chunk_bytes;
inline constexpr std::size_t max_payload_bytes = max_raw_bytes + page_bytes;

inline constexpr std::uint32_t block_kind_plain = 1;
inline constexpr std::uint32_t block_kind_summary = 2;
inline constexpr char block_magic[4] = {'P', 'B', 'L', 'K'};

}  // namespace paceline::format
