// SPDX-License-Identifier: Apache-2.0
#include "analysis/watch/growing_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "profiler/format/block.h"
#include "profiler/format/hash.h"

namespace paceline::analysis {

using format::BlockHeader;
using format::ChunkHeader;
using format::ChunkState;
using format::InputFile;
using format::Slot;

namespace growing_file_parts {

constexpr unsigned search_every = 16;  // polls; a new thread opens a chunk without any other sign
constexpr std::size_t most_live_chunks = 100'000;
constexpr std::size_t most_damage = 64;  // broken blocks of one poll
constexpr std::uint32_t needed_contents = format::has_definitions | format::has_settings | format::has_clock;

}  // namespace growing_file_parts

struct GrowingFile::Piece {
  BlockHeader header{};
  std::uint64_t payload_at = 0;  // 0: live slots
  std::uint32_t read_before = 0;
  bool after_skipped = false;
  std::vector<Slot> slots;
};

std::size_t GrowingFile::read(const InputFile& file, std::uint64_t at, void* out, std::size_t bytes) {
  const std::size_t got = file.read(at, out, bytes);
  bytes_read_ += got;
  return got;
}

// Reads the header and its text at first, and later only the header.
void GrowingFile::read_header(const InputFile& file) {
  if (!opened_) {
    format::TraceFacts facts;
    facts.path = path_;
    format::read_header(file, facts, damage_);
    bytes_read_ += sizeof(format::FileHeader) + facts.header.text_bytes;
    facts_ = std::move(facts);
    opened_ = true;
    return;
  }
  format::FileHeader now;
  if (read(file, 0, &now, sizeof now) < sizeof now || now.hash != header_hash(now)) {
    file.fail("the header cannot be read any more");
  }
  if (now.file_id != facts_.header.file_id) file.fail("another recording has taken its place");
  facts_.header = now;
}

void GrowingFile::find_used_chunks(const InputFile& file) {
  const format::FileHeader& header = facts_.header;
  used_.clear();
  const std::uint64_t end = header.header_bytes + header.live_bytes;
  for (std::uint64_t at = header.header_bytes; at < end; at += format::chunk_bytes) {
    ChunkHeader unit;
    if (read(file, at, &unit, sizeof unit) < sizeof unit) return;
    if (unit.state == static_cast<std::uint32_t>(ChunkState::lost_table)) continue;
    if (unit.pages != 1) {
      if (unit.state != static_cast<std::uint32_t>(ChunkState::free)) used_.push_back({at, format::chunk_bytes});
      continue;
    }
    for (std::uint64_t page = at; page < at + format::chunk_bytes; page += format::page_bytes) {
      ChunkHeader chunk;
      if (read(file, page, &chunk, sizeof chunk) < sizeof chunk) return;
      if (chunk.state != static_cast<std::uint32_t>(ChunkState::free)) used_.push_back({page, format::page_bytes});
    }
  }
}

bool GrowingFile::read_chunk(const InputFile& file, std::uint64_t at, std::size_t bytes, std::vector<Piece>& pieces) {
  ChunkHeader chunk, after;
  if (read(file, at, &chunk, sizeof chunk) < sizeof chunk) return false;
  if (chunk.state != static_cast<std::uint32_t>(ChunkState::open) &&
      chunk.state != static_cast<std::uint32_t>(ChunkState::full)) {
    return false;
  }
  const auto known = read_slots_.find(chunk.sequence);
  const std::uint32_t before = known == read_slots_.end() ? 0 : known->second;
  const std::size_t all = (bytes - sizeof chunk) / sizeof(Slot);
  if (before >= all) return true;
  // A page at a time, until slots follow that were not written yet.
  Piece piece;
  std::vector<Slot>& slots = piece.slots;
  constexpr std::size_t step = format::page_bytes / sizeof(Slot);
  std::size_t whole = 0;
  for (std::size_t have = 0; before + have < all;) {
    const std::size_t wanted = std::min(step, all - before - have);
    slots.resize(have + wanted);
    const std::size_t got =
        read(file, at + sizeof chunk + (before + have) * sizeof(Slot), slots.data() + have, wanted * sizeof(Slot));
    have += got / sizeof(Slot);
    slots.resize(have);
    whole = format::whole_slots(slots.data(), have);
    // A long event may lie across the end of what was read.
    const bool goes_on = whole == have || (slots[whole].high != 0 && format::is_known(type_of(slots[whole])));
    if (got < wanted * sizeof(Slot) || !goes_on) break;
  }
  slots.resize(whole);
  // The drain may have set it free meanwhile; its events are in a block then.
  if (read(file, at, &after, sizeof after) < sizeof after || after.state == 0 || after.sequence != chunk.sequence) {
    return false;
  }
  if (slots.empty()) return true;
  piece.header.track = chunk.track;
  piece.header.thread_id = chunk.thread_id;
  piece.header.sequence = chunk.sequence;
  piece.header.slots = static_cast<std::uint32_t>(whole);
  read_slots_[chunk.sequence] = before + static_cast<std::uint32_t>(whole);
  pieces.push_back(std::move(piece));
  return true;
}

void GrowingFile::read_live_area(const InputFile& file, std::vector<Piece>& pieces) {
  const format::FileHeader& header = facts_.header;
  if (header.live_bytes == 0 || header.live_bytes % format::chunk_bytes != 0 ||
      header.live_bytes > format::max_live_bytes) {
    used_.clear();
    return;
  }
  const bool is_search_due = polls_ % growing_file_parts::search_every == 0 || header.blocks_end != known_end_;
  known_end_ = header.blocks_end;
  if (!is_search_due) {
    const bool any_free =
        std::erase_if(used_, [&](const Used& chunk) { return !read_chunk(file, chunk.at, chunk.bytes, pieces); }) > 0;
    if (!any_free) return;
  }
  // A chunk that was read above has nothing new.
  find_used_chunks(file);
  std::erase_if(used_, [&](const Used& chunk) { return !read_chunk(file, chunk.at, chunk.bytes, pieces); });
}

void GrowingFile::read_blocks(const InputFile& file, std::vector<Piece>& pieces) {
  const format::FileHeader& header = facts_.header;
  const std::uint64_t begin = header.header_bytes + header.live_bytes;
  if (header.blocks_end < begin) return;
  const std::uint64_t size = file.size();
  if (header.blocks_end > size) damage_.add(fmt::format("cut: {} of {} bytes are there", size, header.blocks_end));
  const std::uint64_t end = std::min(header.blocks_end, size);
  std::uint64_t at = begin + block_offset_;
  format::FileWindow window(file, end);
  for (std::size_t broken = 0; at < end;) {
    Piece piece;
    std::byte bytes[sizeof(BlockHeader)];
    const std::size_t got = read(file, at, bytes, std::min<std::size_t>(sizeof bytes, end - at));
    const std::size_t head_bytes = format::read_block_header({bytes, got}, piece.header);
    const bool is_block =
        head_bytes > 0 && std::memcmp(piece.header.magic, format::block_magic, sizeof format::block_magic) == 0 &&
        piece.header.payload_bytes <= format::max_payload_bytes && at + head_bytes + piece.header.payload_bytes <= end;
    if (!is_block) {
      damage_.add(fmt::format("no whole block where one should start, at byte {}", at));
      at = ++broken > growing_file_parts::most_damage ? end : window.find_magic(at + 1);
      continue;
    }
    piece.payload_at = at + head_bytes;
    at = piece.payload_at + piece.header.payload_bytes;
    const auto known = read_slots_.find(piece.header.sequence);
    if (known != read_slots_.end()) {
      piece.read_before = known->second;
      read_slots_.erase(known);
    }
    if (piece.read_before < piece.header.slots) pieces.push_back(std::move(piece));
  }
  // A flight recorder uses chunks again without writing blocks.
  if (read_slots_.size() > growing_file_parts::most_live_chunks) read_slots_.clear();
  block_offset_ = at - begin;
}

bool GrowingFile::decode(const InputFile& file, Piece& piece) {
  payload_.resize(piece.header.payload_bytes);
  payload_.resize(read(file, piece.payload_at, payload_.data(), payload_.size()));
  const char* wrong = payload_.size() < piece.header.payload_bytes ? "cut" : check_block(piece.header, payload_);
  if (wrong == nullptr) wrong = decoder_.decode(piece.header, payload_, piece.slots);
  if (wrong != nullptr) {
    damage_.add(fmt::format("the block at byte {} is broken: {}", piece.payload_at - sizeof(BlockHeader), wrong));
    return false;
  }
  piece.slots.erase(piece.slots.begin(), piece.slots.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(
                                                                   piece.read_before, piece.slots.size())));
  return true;
}

void GrowingFile::count(const std::vector<Slot>& slots) {
  for (std::size_t at = 0; at < slots.size(); at = format::next_head(slots.data(), at)) {
    ++events_[static_cast<std::size_t>(family_of(type_of(slots[at])))];
  }
}

std::vector<NewEvents> GrowingFile::poll() {
  const InputFile file(path_);
  read_header(file);
  // The live area first: what the drain moves meanwhile is in a block by then.
  std::vector<Piece> pieces;
  read_live_area(file, pieces);
  if (facts_.header.live_bytes > 0) read_header(file);
  read_blocks(file, pieces);
  ++polls_;
  std::ranges::stable_sort(pieces, {},
                           [](const Piece& piece) { return std::pair(piece.header.track, piece.header.sequence); });
  std::map<std::uint32_t, std::size_t> left;  // pieces, by track
  for (const Piece& piece : pieces) ++left[piece.header.track];
  std::map<std::uint32_t, bool> skipped;
  std::vector<NewEvents> events;
  for (Piece& piece : pieces) {
    std::size_t& after = left[piece.header.track];
    bool& gap = skipped[piece.header.track];
    const bool is_old = after-- > most_blocks && piece.header.kind == format::block_kind_summary;
    if (piece.payload_at != 0) {
      if (is_old && (piece.header.contents & growing_file_parts::needed_contents) == 0) {
        for (std::size_t f = 0; f < format::families; ++f) {
          events_[f] += piece.header.count[f];
          skipped_ += piece.header.count[f];
        }
        gap = true;
        continue;
      }
      if (!decode(file, piece)) {
        gap = true;
        continue;
      }
    }
    count(piece.slots);
    events.push_back({piece.header.track, piece.header.thread_id, std::exchange(gap, false), std::move(piece.slots)});
  }
  return events;
}

}  // namespace paceline::analysis
