// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/trace_file_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <set>
#include <unordered_set>

#include "profiler/format/block_summary.h"
#include "profiler/format/events.h"
#include "profiler/format/header_reader.h"
#include "profiler/format/input_file.h"
#include "profiler/format/live_area.h"

namespace paceline::format {

struct TraceFileReader::State {
  std::shared_ptr<const InputFile> file;  // null once a closed file was read; a running process may replace its file
  TraceFacts facts;
  std::vector<LiveChunk> live;
  std::vector<BlockEntry> blocks;
  std::vector<TrackBlocks> tracks;
  mutable std::mutex damage_mutex;
  mutable DamageLog damage;

  void note_broken_block(const BlockEntry& block, const char* what) const {
    const std::size_t header_bytes = block.has_summary() ? sizeof(BlockHeader) : short_block_header_bytes;
    const std::lock_guard lock(damage_mutex);
    damage.add(fmt::format("the block at byte {} is broken: {}", block.payload_at - header_bytes, what));
  }
};

namespace {

// How often the search for the next block of a damaged file may find one where there is none.
constexpr int max_false_blocks = 10'000;

// The blocks of a file, one after another.
class BlockList {
 public:
  BlockList(const InputFile& file, DamageLog& damage) : file_(file), damage_(damage) {}

  void read(FileHeader& header, std::uint64_t size) {
    FileHeader now;  // of a running process, blocks_end may have moved on
    if (header.closed == 0 && header.live_bytes > 0 && file_.read(0, &now, sizeof now) == sizeof now &&
        now.live_bytes == header.live_bytes) {
      header = now;
      size = file_.size();
    }
    const std::uint64_t begin = header.header_bytes + header.live_bytes;
    std::uint64_t end = std::min(header.blocks_end, size);
    if (header.blocks_end > size) {
      damage_.add(fmt::format("cut: {} of {} bytes are there", size, header.blocks_end));
    } else if (header.blocks_end < begin || (header.closed != 0 && header.blocks_end < size)) {
      damage_.add(fmt::format("the header says that {} bytes are used, of {}", header.blocks_end, size));
      end = size;
    }
    FileWindow window(file_, end);
    int false_blocks = 0;
    for (std::uint64_t at = begin; at < end;) {
      const std::uint64_t length = read_block(window, at);
      if (length == 0 && ++false_blocks > max_false_blocks) {
        damage_.add(fmt::format("too many broken blocks; given up at byte {}", at));
        break;
      }
      at = length > 0 ? at + length : window.find_magic(at + 1);
    }
  }

  void add_live(const std::vector<LiveChunk>& live) {
    for (std::uint32_t i = 0; i < live.size(); ++i) {
      if (!sequences_.insert(live[i].sequence).second) continue;  // a block has it
      BlockEntry entry;
      entry.live_chunk = i;
      std::memcpy(entry.header.magic, block_magic, sizeof block_magic);
      entry.header.kind = block_kind_summary;
      entry.header.track = live[i].track;
      entry.header.slots = static_cast<std::uint32_t>(live[i].slots.size());
      entry.header.sequence = live[i].sequence;
      entry.header.thread_id = live[i].thread_id;
      summarize(live[i].slots.data(), live[i].slots.size(), entry.header);
      entries_.push_back(entry);
    }
  }

  std::vector<BlockEntry> take() {
    const auto by_track = [](const BlockEntry& entry) { return std::pair(entry.header.track, entry.header.sequence); };
    if (!std::ranges::is_sorted(entries_, {}, by_track)) std::ranges::sort(entries_, {}, by_track);
    return std::move(entries_);
  }

  // What looked like a block, and of which nothing else is in the file.
  std::vector<BlockHeader> take_broken() {
    std::erase_if(broken_, [&](const BlockHeader& block) { return sequences_.contains(block.sequence); });
    return std::move(broken_);
  }

 private:
  // Adds the block that starts at offset `at`. Returns its length in bytes, or 0 if the file ends inside it.
  std::uint64_t read_block(FileWindow& window, std::uint64_t at) {
    BlockEntry entry;
    BlockHeader& block = entry.header;
    const std::size_t head_bytes = read_block_header(window.at(at, sizeof block), block);
    if (head_bytes == 0) {
      damage_.add(fmt::format("cut in a block's header, at byte {}", at));
      return 0;
    }
    if (std::memcmp(block.magic, block_magic, sizeof block.magic) != 0) {
      damage_.add(fmt::format("no block where one should start, at byte {}", at));
      return 0;
    }
    if (block.payload_bytes > max_payload_bytes) {
      damage_.add(fmt::format("the block at byte {} has a size out of range", at));
      return 0;
    }
    entry.payload_at = at + head_bytes;
    const std::span<const std::byte> payload = window.at(entry.payload_at, block.payload_bytes);
    if (payload.size() < block.payload_bytes) {
      damage_.add(fmt::format("the block at byte {} is cut", at));
      note_broken(block);
      return 0;
    }
    if (const char* wrong = check_block(block, payload)) {
      damage_.add(fmt::format("the block at byte {} is broken: {}", at, wrong));
      note_broken(block);
      return 0;
    }
    if (!sequences_.insert(block.sequence).second) {
      damage_.add(fmt::format("the block at byte {} is there twice", at));
    } else {
      entries_.push_back(entry);
    }
    return head_bytes + block.payload_bytes;
  }

  void note_broken(const BlockHeader& block) {
    constexpr std::size_t most = 1000;
    if (broken_.size() < most) broken_.push_back(block);
  }

  const InputFile& file_;
  DamageLog& damage_;
  std::vector<BlockEntry> entries_;
  std::vector<BlockHeader> broken_;
  std::unordered_set<std::uint64_t> sequences_;
};

std::vector<TrackBlocks> tracks_of(std::span<const BlockEntry> blocks) {
  std::vector<TrackBlocks> tracks;
  for (std::size_t first = 0; first < blocks.size();) {
    const BlockHeader& head = blocks[first].header;
    std::size_t last = first;
    std::uint64_t slots = 0;
    for (; last < blocks.size() && blocks[last].header.track == head.track; ++last) slots += blocks[last].header.slots;
    tracks.push_back({head.track, head.thread_id, blocks.subspan(first, last - first), slots});
    first = last;
  }
  return tracks;
}

// The first and the last ticks of a block; decodes it where its header does not have them.
std::pair<std::uint64_t, std::uint64_t> times_of(const BlockEntry& block, BlockCursor& cursor) {
  BlockHeader header = block.header;
  if (!block.has_summary()) {
    const std::span<const Slot> slots = cursor.slots(block);
    summarize(slots.data(), slots.size(), header);
  }
  return {header.first_ticks, header.last_ticks};
}

// The header of a broken block may be right all the same: it is believed if the track that it names has other blocks.
// They bound the times of the broken one.
void add_broken(const BlockHeader& block, std::span<const BlockEntry> blocks, BlockCursor& cursor,
                std::vector<LostStretch>& losses) {
  const BlockEntry *before = nullptr, *after = nullptr;
  for (const BlockEntry& entry : blocks) {
    const BlockHeader& other = entry.header;
    if (other.track != block.track || other.thread_id != block.thread_id || other.slots == 0) continue;
    if (other.sequence < block.sequence) {
      before = &entry;
    } else if (after == nullptr) {
      after = &entry;
    }
  }
  if (before == nullptr && after == nullptr) return;
  LostStretch lost{block.track, block.thread_id, 0, std::numeric_limits<std::uint64_t>::max()};
  lost.cause = lost_by_damage;
  if (before != nullptr) lost.first_ticks = times_of(*before, cursor).second;
  if (after != nullptr) lost.last_ticks = std::max(lost.first_ticks, times_of(*after, cursor).first);
  // Its own times are narrower, and believed where they lie between.
  if (block.kind == block_kind_summary && block.first_ticks >= lost.first_ticks &&
      block.first_ticks <= block.last_ticks && block.last_ticks <= lost.last_ticks) {
    lost.first_ticks = block.first_ticks;
    lost.last_ticks = block.last_ticks;
  }
  losses.push_back(lost);
}

// From the events `lost`, from the table of those that no event reports yet, and from broken blocks.
std::vector<LostStretch> collect_lost(std::span<const BlockEntry> blocks, const std::vector<LostStretch>& ongoing,
                                      const std::vector<BlockHeader>& broken, BlockCursor& cursor) {
  std::vector<LostStretch> losses;
  std::set<std::pair<std::uint32_t, std::uint64_t>> reported;  // track and first tick
  for (const BlockEntry& block : blocks) {
    if ((block.header.contents & has_lost) == 0) continue;  // version 1 has no such events
    for_each_event(cursor.slots(block), [&](const Slot& head, const Slot*) {
      if (type_of(head) != EventType::lost) return;
      losses.push_back(lost_stretch(block.header.track, block.header.thread_id, unpack<events::Lost>(&head)));
      reported.emplace(block.header.track, losses.back().first_ticks);
    });
  }
  for (const LostStretch& lost : ongoing) {
    if (!reported.contains({lost.track, lost.first_ticks})) losses.push_back(lost);
  }
  for (const BlockHeader& block : broken) add_broken(block, blocks, cursor, losses);
  std::ranges::stable_sort(losses, {}, [](const LostStretch& lost) { return std::pair(lost.track, lost.first_ticks); });
  return losses;
}

}  // namespace

TraceFileReader::TraceFileReader(const std::filesystem::path& path) : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.file = std::make_shared<const InputFile>(path);
  state.facts.path = path;
  FileHeader& header = state.facts.header;
  const std::uint64_t size = read_header(*state.file, state.facts, state.damage);
  LiveArea live = read_live_area(*state.file, size, header, state.damage);
  state.live = std::move(live.chunks);
  BlockList list(*state.file, state.damage);
  list.read(header, size);
  list.add_live(state.live);
  state.blocks = list.take();
  state.tracks = tracks_of(state.blocks);
  BlockCursor cursor(*this);
  state.facts.lost = collect_lost(state.blocks, live.ongoing, list.take_broken(), cursor);
  state.facts.damaged = !state.damage.empty();
  state.facts.damage = state.damage.text();
  if (header.closed != 0) state.file.reset();  // a run may have more files than a process may keep open
}

TraceFileReader::~TraceFileReader() = default;
TraceFileReader::TraceFileReader(TraceFileReader&&) noexcept = default;
TraceFileReader& TraceFileReader::operator=(TraceFileReader&&) noexcept = default;

const TraceFacts& TraceFileReader::facts() const { return state_->facts; }
std::span<const TrackBlocks> TraceFileReader::tracks() const { return state_->tracks; }
std::span<const BlockEntry> TraceFileReader::blocks() const { return state_->blocks; }

std::string TraceFileReader::damage() const {
  const std::lock_guard lock(state_->damage_mutex);
  return state_->damage.text();
}

struct BlockCursor::Buffers {
  std::shared_ptr<const InputFile> file;
  BlockDecoder decoder;
  // What was read last. Blocks of one track often follow one another, and then many are read at once.
  std::vector<std::byte> read;
  std::uint64_t read_at = 0, last_end = 0;
  std::unique_ptr<Slot[]> slots = std::make_unique_for_overwrite<Slot[]>(slots_per_chunk);
  std::vector<EventType> types;
};

BlockCursor::BlockCursor(const TraceFileReader& reader)
    : state_(*reader.state_), buffers_(std::make_unique<Buffers>()) {
  buffers_->file = state_.file;
  if (buffers_->file != nullptr) return;
  buffers_->file = std::make_shared<const InputFile>(state_.facts.path);
  FileHeader now{};
  if (buffers_->file->read(0, &now, sizeof now) != sizeof now || now.file_id != state_.facts.header.file_id ||
      now.blocks_end != state_.facts.header.blocks_end) {
    buffers_->file->fail("the file was replaced while it was read; read it again");
  }
}

BlockCursor::~BlockCursor() = default;

std::span<const std::byte> BlockCursor::payload(const BlockEntry& block) {
  constexpr std::size_t ahead = 256 * 1024;
  auto& [file, decoder, read, read_at, last_end, slots, types] = *buffers_;
  const std::size_t bytes = block.header.payload_bytes;
  if (block.payload_at < read_at || block.payload_at + bytes > read_at + read.size()) {
    const bool follows = block.payload_at >= last_end && block.payload_at - last_end <= sizeof(BlockHeader);
    read.resize(follows ? std::max(bytes, ahead) : bytes);
    read_at = block.payload_at;
    read.resize(file->read(read_at, read.data(), read.size()));
  }
  last_end = block.payload_at + bytes;
  const auto offset = static_cast<std::size_t>(block.payload_at - read_at);
  return std::span(read).subspan(offset, std::min(bytes, read.size() - offset));
}

std::span<const Slot> BlockCursor::slots(const BlockEntry& block) {
  if (block.payload_at == 0) return state_.live[block.live_chunk].slots;
  const std::span<Slot> into(buffers_->slots.get(), slots_per_chunk);
  if (const char* wrong = buffers_->decoder.decode(block.header, payload(block), into)) {
    state_.note_broken_block(block, wrong);
    return {};
  }
  return into.first(block.header.slots);
}

std::span<const EventType> BlockCursor::types(const BlockEntry& block) {
  std::vector<EventType>& types = buffers_->types;
  types.clear();
  if (block.payload_at == 0) {
    for_each_event(state_.live[block.live_chunk].slots,
                   [&](const Slot& head, const Slot*) { types.push_back(type_of(head)); });
  } else if (const char* wrong = buffers_->decoder.decode_types(block.header, payload(block), types)) {
    state_.note_broken_block(block, wrong);
    types.clear();
  }
  return types;
}

}  // namespace paceline::format
