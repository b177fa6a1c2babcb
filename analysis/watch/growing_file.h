// SPDX-License-Identifier: Apache-2.0
// Follows a .pace file while a process writes it. Each poll reads only what is new since the one before.
//
//   GrowingFile file("run/node1-r0-p7.pace");
//   for (const NewEvents& events : file.poll()) …          // whole events, track by track, each event once
//
// The file keeps the offset of the last whole block that it read, and for each chunk of the live area the number of its
// slots that it read. When such a chunk becomes a block, those slots are left out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/format/block_decoder.h"
#include "profiler/format/event.h"
#include "profiler/format/header_reader.h"

namespace paceline::analysis {

// New events of one chunk.
struct NewEvents {
  std::uint32_t track = 0;
  std::uint64_t thread_id = 0;
  bool after_skipped = false;       // earlier events of the track were left out, so its open ranges are not known
  std::vector<format::Slot> slots;  // whole events, in their order
};

class GrowingFile {
 public:
  explicit GrowingFile(std::filesystem::path path) : path_(std::move(path)) {}

  // A poll decodes at most this number of new blocks of a track. Of older ones it decodes those with definitions,
  // settings or clock events and only counts the others.
  static constexpr std::size_t most_blocks = 128;

  // The events that were written since the last poll, by track and in the order of each track. Opens the file for the
  // time of the call. Throws Error where the file cannot be opened, has no whole header, or has become another
  // recording. Cost: linear in the new bytes, and a few bytes for each chunk of the live area that may be in use.
  std::vector<NewEvents> poll();

  const std::filesystem::path& path() const { return path_; }
  const format::TraceFacts& facts() const { return facts_; }  // the header as of the last poll
  std::string damage() const { return damage_.text(); }       // one line, "" where nothing is damaged
  std::uint64_t bytes_read() const { return bytes_read_; }    // by all polls together
  std::uint64_t skipped_events() const { return skipped_; }   // counted, but not decoded
  // NVTX ranges and marks, and MPI calls: those that poll() returned and those that it skipped.
  std::uint64_t events(format::Family family) const { return events_[static_cast<std::size_t>(family)]; }

 private:
  struct Piece;  // of a track: a block, or the live slots of a chunk

  void read_header(const format::InputFile& file);
  void read_live_area(const format::InputFile& file, std::vector<Piece>& pieces);
  // Reads the chunk's new slots. False if it is free.
  bool read_chunk(const format::InputFile& file, std::uint64_t at, std::size_t bytes, std::vector<Piece>& pieces);
  void find_used_chunks(const format::InputFile& file);
  void read_blocks(const format::InputFile& file, std::vector<Piece>& pieces);
  bool decode(const format::InputFile& file, Piece& piece);
  std::size_t read(const format::InputFile& file, std::uint64_t at, void* out, std::size_t bytes);
  void count(const std::vector<format::Slot>& slots);

  std::filesystem::path path_;
  format::TraceFacts facts_;
  format::DamageLog damage_;
  bool opened_ = false;
  std::uint64_t block_offset_ = 0;  // of the next block, from the first one on
  std::uint64_t known_end_ = 0;     // blocks_end when the live area was last searched
  unsigned polls_ = 0;
  struct Used {
    std::uint64_t at = 0;
    std::size_t bytes = 0;
  };
  std::vector<Used> used_;                                       // chunks of the live area that may hold events
  std::unordered_map<std::uint64_t, std::uint32_t> read_slots_;  // of live chunks, by sequence
  format::BlockDecoder decoder_;
  std::vector<std::byte> payload_;
  std::uint64_t bytes_read_ = 0, skipped_ = 0;
  std::uint64_t events_[format::families] = {};
};

}  // namespace paceline::analysis
