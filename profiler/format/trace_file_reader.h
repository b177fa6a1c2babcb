// SPDX-License-Identifier: Apache-2.0
// Opens a .pace file and decodes its events one block at a time, so that a reader of a large file need not hold all of
// its slots in memory.
//
//   const TraceFileReader reader(path);                      // checks every block's hash, decodes almost none
//   BlockCursor cursor(reader);                              // one for each thread that decodes
//   for (const TrackBlocks& track : reader.tracks()) {
//     for (const BlockEntry& block : track.blocks) {
//       if (!block.may_contain(has_definitions)) continue;   // what a reader need not decode
//       for_each_event(cursor.slots(block), [&](const Slot& head, const Slot* extension) { … });
//     }
//   }
//
// The events of a track are those of its blocks in this order. An event never spans two blocks, but NVTX payloads may
// end one block while their event begins the next one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "profiler/format/block_decoder.h"
#include "profiler/format/event_table.h"
#include "profiler/format/trace_facts.h"

namespace paceline::format {

// The events of one chunk: a block of the file, or a chunk of the live area.
struct BlockEntry {
  // Of a live chunk: the header that its block would have, without payload_bytes, raw_bytes and hash.
  BlockHeader header{};
  std::uint64_t payload_at = 0;  // offset of the payload in the file, in bytes; 0 = a live chunk
  std::uint32_t live_chunk = 0;  // index among the live chunks

  // False for a block of version 1: its ticks, counts and contents are all 0, and only decoding finds them.
  bool has_summary() const { return header.kind == block_kind_summary; }
  // False only if the block has none of these contents (BlockContent).
  bool may_contain(std::uint32_t contents) const { return !has_summary() || (header.contents & contents) != 0; }
};

struct TrackBlocks {
  std::uint32_t id = 0;
  std::uint64_t thread_id = 0;
  std::span<const BlockEntry> blocks;  // in the order of the track
  std::uint64_t slots = 0;             // of all blocks together
};

class TraceFileReader {
 public:
  // Reads the header, the live area and all blocks' headers, and checks all hashes. Throws Error where not even a
  // header can be read. Damage after the header is no error: see facts(). A running process may go on writing: the
  // reader has the events up to some moment during this call. Cost: linear in the file's bytes, some 0.2 s for 1 GB in
  // memory.
  explicit TraceFileReader(const std::filesystem::path& path);
  ~TraceFileReader();
  TraceFileReader(TraceFileReader&&) noexcept;
  TraceFileReader& operator=(TraceFileReader&&) noexcept;

  // `damaged` and `damage` hold what was found when the file was opened.
  const TraceFacts& facts() const;
  std::span<const TrackBlocks> tracks() const;  // by id
  std::span<const BlockEntry> blocks() const;   // of all tracks: by track, then in the order of the track

  // As facts().damage, and blocks whose hash fits but that a cursor could not decode; "" where nothing is damaged. May
  // be called while other threads decode.
  std::string damage() const;

 private:
  friend class BlockCursor;
  struct State;
  std::unique_ptr<State> state_;
};

// Decodes blocks of one file. The reader must live as long.
class BlockCursor {
 public:
  // Opens the file again if the reader has closed it. Throws Error where that fails or the path has become another
  // file's.
  explicit BlockCursor(const TraceFileReader& reader);
  ~BlockCursor();
  BlockCursor(const BlockCursor&) = delete;
  BlockCursor& operator=(const BlockCursor&) = delete;

  // The whole events of the block, valid until the next call. Empty where the block cannot be decoded although its hash
  // fits: the reader's damage() then reports it. Cost: linear in slots.
  std::span<const Slot> slots(const BlockEntry& block);

  // The types of the block's events, in order, valid until the next call. Costs a fraction of slots(); empty as above.
  std::span<const EventType> types(const BlockEntry& block);

 private:
  std::span<const std::byte> payload(const BlockEntry& block);

  struct Buffers;
  const TraceFileReader::State& state_;
  std::unique_ptr<Buffers> buffers_;
};

// Calls visit(head, extension) for each whole event; `extension` points to the event's extension slots.
template <typename Visit>
void for_each_event(std::span<const Slot> slots, Visit&& visit) {
  for (std::size_t at = 0; at < slots.size();) {
    const std::size_t next = next_head(slots.data(), at);
    if (next > slots.size()) return;
    visit(slots[at], slots.data() + at + 1);
    at = next;
  }
}

}  // namespace paceline::format
