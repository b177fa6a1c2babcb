#include "profiler/format/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>

#include "profiler/format/block.h"
#include "profiler/format/block_decoder.h"
#include "profiler/format/block_summary.h"
#include "profiler/format/error.h"
#include "profiler/format/hash.h"

namespace paceline::format {
namespace {

// How often a damaged file may look like having a block where it has none, before the search for more is given up.
constexpr int max_false_blocks = 10'000;

// Opening a FIFO would wait for its writer, and opening a terminal could make it this process's own.
int open_without_waiting(const std::filesystem::path& path) {
  return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

class File {
 public:
  explicit File(const std::filesystem::path& path)
      : name_(path.string()), descriptor_(open_without_waiting(path)) {
    if (descriptor_ < 0) fail(std::strerror(errno));
  }
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[noreturn]] void fail(const std::string& what) const { throw Error(fmt::format("{}: {}", name_, what)); }

  std::uint64_t size() const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) fail(std::strerror(errno));
    if (!S_ISREG(status.st_mode)) fail("not a regular file");
    return static_cast<std::uint64_t>(status.st_size);
  }

  // The first place from `offset` on that is in no hole; `end` where only a hole follows.
  std::uint64_t next_data(std::uint64_t offset, std::uint64_t end) const {
    const off_t found = lseek(descriptor_, static_cast<off_t>(offset), SEEK_DATA);
    if (found < 0) return errno == ENXIO ? end : offset;  // else the file system does not know
    return static_cast<std::uint64_t>(found);
  }

  // Reads up to `bytes` bytes; fewer only at the end of the file.
  std::size_t read(std::uint64_t offset, void* out, std::size_t bytes) const {
    std::size_t done = 0;
    while (done < bytes) {
      const ssize_t got =
          pread(descriptor_, static_cast<char*>(out) + done, bytes - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(std::strerror(errno));
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

 private:
  std::string name_;
  int descriptor_;
};

// A stretch of the file in memory, moved along as needed.
class Window {
 public:
  Window(const File& file, std::uint64_t end) : file_(file), end_(end) {}

  // `bytes` bytes from `offset`, fewer at the end. Valid until the next call.
  std::span<const std::byte> at(std::uint64_t offset, std::size_t bytes) {
    if (offset >= end_) return {};
    bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, end_ - offset));
    if (offset < begin_ || offset + bytes > begin_ + buffer_.size()) {
      begin_ = offset;
      buffer_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(std::max(bytes, window_bytes), end_ - offset)));
      buffer_.resize(file_.read(offset, buffer_.data(), buffer_.size()));
      bytes = std::min(bytes, buffer_.size());
    }
    return std::span(buffer_).subspan(static_cast<std::size_t>(offset - begin_), bytes);
  }

  // Where the next block may start: the block magic's place from `offset` on, else the end.
  std::uint64_t find_magic(std::uint64_t offset) {
    while (offset + sizeof block_magic <= end_) {
      // A magic may begin in a hole's last bytes only if it held a zero byte, which it does not.
      offset = file_.next_data(offset, end_);
      const std::span<const std::byte> piece = at(offset, window_bytes);
      const auto* magic = reinterpret_cast<const std::byte*>(block_magic);
      const auto found = std::search(piece.begin(), piece.end(), magic, magic + sizeof block_magic);
      if (found != piece.end()) return offset + static_cast<std::uint64_t>(found - piece.begin());
      if (piece.size() < sizeof block_magic) break;
      offset += piece.size() - (sizeof block_magic - 1);
    }
    return end_;
  }

 private:
  static constexpr std::size_t window_bytes = 1024 * 1024;
  const File& file_;
  std::uint64_t end_;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> buffer_;
};

// The events of one chunk, from a block or from the live area.
struct Piece {
  std::uint32_t track = 0;
  std::uint64_t sequence = 0;
  std::uint64_t thread_id = 0;
  std::vector<Slot> slots;
  bool has_lost = false;  // `lost` is among its events
};

LostStretch stretch_of(const Piece& piece, const Slot& head, const Slot& extension) {
  LostStretch lost{piece.track, piece.thread_id, extension.high, extension.low, head.low >> 16};
  lost.last_ticks = std::max(lost.first_ticks, lost.last_ticks);
  lost.cause = static_cast<std::uint32_t>(head.low & 0xff);
  lost.any_thread = (head.low >> 8 & 0xff) == static_cast<std::uint64_t>(LostScope::any_thread);
  return lost;
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : file_(path) { trace_.path = path; }

  TraceFile read_header_alone() {
    read_header();
    return std::move(trace_);
  }

  TraceFile read() {
    read_header();
    std::vector<Piece> live = read_live_area();
    read_blocks();
    for (Piece& piece : live) {
      if (sequences_.insert(piece.sequence).second) pieces_.push_back(std::move(piece));
    }
    collect_lost();
    join_tracks();
    if (damages_ > 1) trace_.damage += fmt::format(" (and {} more)", damages_ - 1);
    return std::move(trace_);
  }

  TraceSummary read_summary() {
    read_header();
    summaries_.emplace();
    const std::vector<Piece> live = read_live_area();
    read_blocks();
    for (const Piece& piece : live) {
      if (sequences_.insert(piece.sequence).second) add_summary(piece);
    }
    if (damages_ > 1) trace_.damage += fmt::format(" (and {} more)", damages_ - 1);
    return {trace_.header, std::move(*summaries_), trace_.damaged, trace_.damage};
  }

 private:
  void damage(std::string what) {
    if (damages_++ == 0) trace_.damage = std::move(what);
    trace_.damaged = true;
  }

  void read_header() {
    FileHeader& header = trace_.header;
    size_ = file_.size();
    const std::size_t got = file_.read(0, &header, sizeof header);
    if (got < sizeof header.magic || std::memcmp(header.magic, file_magic, sizeof header.magic) != 0) {
      file_.fail("not a .pace trace: it does not start with PACELINE");
    }
    if (got < sizeof header) file_.fail(fmt::format("cut in its header, after {} bytes; nothing can be read", got));
    if (header.version < oldest_file_version || header.version > file_version) {
      file_.fail(
          fmt::format("version {} of the trace format, but this program reads versions {} to {}; use a newer Paceline",
                      header.version, oldest_file_version, file_version));
    }
    if (header.hash != header_hash(header)) file_.fail("the header's checksum does not fit; nothing can be read");
    if (header.header_bytes % page_bytes != 0 || header.header_bytes > max_header_bytes ||
        header.header_bytes < sizeof header || header.text_bytes > header.header_bytes - sizeof header) {
      file_.fail("the header's sizes are out of range; nothing can be read");
    }
    if (size_ < header.header_bytes) {
      file_.fail(
          fmt::format("cut in its header, after {} of {} bytes; nothing can be read", size_, header.header_bytes));
    }
    std::string text(header.text_bytes, '\0');
    text.resize(file_.read(sizeof header, text.data(), text.size()));
    if (text.size() != header.text_bytes || header.text_hash != XXH3_64bits(text.data(), text.size())) {
      damage("the checksum of the header's text does not fit");
      return;
    }
    read_text(text);
  }

  void read_text(const std::string& text) {
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) {
      damage("the header's text is not a JSON object");
      return;
    }
    const auto string = [&](const char* key, std::string& value) {
      const auto found = json.find(key);
      if (found != json.end() && found->is_string()) value = found->get<std::string>();
    };
    const auto strings = [&](const char* key, std::map<std::string, std::string>& values) {
      const auto found = json.find(key);
      if (found == json.end() || !found->is_object()) return;
      for (const auto& [name, value] : found->items()) {
        if (value.is_string()) values[name] = value.get<std::string>();
      }
    };
    string("host", trace_.host);
    string("boot_id", trace_.boot_id);
    string("directory", trace_.directory);
    string("job", trace_.job);
    string("parent", trace_.parent);
    strings("environment", trace_.environment);
    strings("set", trace_.set);
    const auto start = json.find("start"), forked = json.find("forked"), ancestors = json.find("ancestors");
    if (start != json.end() && start->is_number_unsigned()) trace_.process_start = start->get<std::uint64_t>();
    if (forked != json.end() && forked->is_number_unsigned() && *forked < 4096) trace_.forked = forked->get<int>();
    if (ancestors != json.end() && ancestors->is_array()) {
      for (const auto& ancestor : *ancestors) {
        if (ancestor.is_string()) trace_.ancestors.push_back(ancestor.get<std::string>());
      }
    }
    const auto utc_error = json.find("utc_error_us");
    if (utc_error != json.end() && utc_error->is_number_unsigned() && *utc_error < std::uint64_t{1} << 40) {
      trace_.utc_error_us = utc_error->get<std::int64_t>();
    }
    const auto command = json.find("command");
    if (command == json.end() || !command->is_array()) return;
    for (const auto& argument : *command) {
      if (argument.is_string()) trace_.command.push_back(argument.get<std::string>());
    }
  }

  // The live area comes before the blocks: of a running process, a chunk that is set free meanwhile is in a block by
  // then. One that was set free while it was copied is left to its block.
  std::vector<Piece> read_live_area() {
    FileHeader& header = trace_.header;
    std::vector<Piece> live;
    if (header.live_bytes % chunk_bytes != 0 || header.live_bytes > max_live_bytes) {
      damage(fmt::format("the length of the live area, {} bytes, is out of range", header.live_bytes));
      header.live_bytes = 0;
    }
    const std::uint64_t end = header.header_bytes + header.live_bytes;
    for (std::uint64_t at = header.header_bytes; at < end; at += chunk_bytes) {
      ChunkHeader unit;
      if (at >= size_ || file_.read(at, &unit, sizeof unit) < sizeof unit) {
        damage(fmt::format("cut in the live area, at byte {}", size_));
        break;
      }
      read_unit(at, unit, live);
    }
    return live;
  }

  void read_unit(std::uint64_t at, ChunkHeader unit, std::vector<Piece>& live) {
    if (unit.state == static_cast<std::uint32_t>(ChunkState::lost_table)) {
      read_lost_table(at);
      return;
    }
    // Of a running process, a unit may be divided or made whole meanwhile.
    for (int attempt = 0; attempt < 3; ++attempt) {
      const std::uint32_t pages = unit.pages;
      if (pages > 1) {
        damage(fmt::format("the chunk at byte {} has an unknown size", at));
        return;
      }
      const std::size_t before = live.size();
      const std::size_t step = pages == 1 ? page_bytes : chunk_bytes;
      for (std::uint64_t chunk = at; chunk < at + chunk_bytes; chunk += step) read_chunk(chunk, step, live);
      if (file_.read(at, &unit, sizeof unit) < sizeof unit || unit.pages == pages) return;
      live.resize(before);
    }
  }

  void read_chunk(std::uint64_t at, std::size_t bytes, std::vector<Piece>& live) {
    ChunkHeader chunk, after;
    if (file_.read(at, &chunk, sizeof chunk) < sizeof chunk) {
      damage(fmt::format("cut in the live area, at byte {}", size_));
      return;
    }
    if (chunk.state == static_cast<std::uint32_t>(ChunkState::free)) return;
    if (chunk.state > static_cast<std::uint32_t>(ChunkState::full)) {
      damage(fmt::format("the chunk at byte {} has an unknown state", at));
      return;
    }
    Piece piece{chunk.track, chunk.sequence, chunk.thread_id, {}};
    const std::size_t slot_bytes = bytes - sizeof chunk;
    piece.slots.resize(slot_bytes / sizeof(Slot));
    const std::size_t got = file_.read(at + sizeof chunk, piece.slots.data(), slot_bytes);
    if (got < slot_bytes) damage(fmt::format("cut in the live area, at byte {}", size_));
    if (file_.read(at, &after, sizeof after) < sizeof after || after.state == 0 || after.sequence != chunk.sequence) {
      return;
    }
    piece.slots.resize(got / sizeof(Slot));
    const std::size_t whole = whole_slots(piece.slots.data(), piece.slots.size());
    if (whole < piece.slots.size() && piece.slots[whole].high != 0 && got == slot_bytes) {
      damage(fmt::format("the chunk at byte {} has a broken event in slot {}", at, whole));
    }
    piece.slots.resize(whole);
    piece.has_lost = true;  // perhaps
    live.push_back(std::move(piece));
  }

  void read_lost_table(std::uint64_t at) {
    std::vector<LostEntry> entries(lost_entries);
    const std::size_t got = file_.read(at + sizeof(ChunkHeader), entries.data(), entries.size() * sizeof(LostEntry));
    if (got < entries.size() * sizeof(LostEntry)) damage(fmt::format("cut in the live area, at byte {}", size_));
    entries.resize(got / sizeof(LostEntry));
    for (const LostEntry& entry : entries) {
      if (entry.events == 0) continue;
      const Piece owner{entry.track, 0, entry.thread_id, {}};
      ongoing_.push_back(
          stretch_of(owner, {0, pack_lost(entry.cause & 0xffff, entry.events)}, {entry.first_ticks, entry.last_ticks}));
    }
  }

  void read_blocks() {
    FileHeader& header = trace_.header;
    FileHeader now;  // of a running process, blocks_end may have moved on
    if (header.closed == 0 && header.live_bytes > 0 && file_.read(0, &now, sizeof now) == sizeof now &&
        now.live_bytes == header.live_bytes) {
      header = now;
      size_ = file_.size();
    }
    const std::uint64_t begin = header.header_bytes + header.live_bytes;
    std::uint64_t end = std::min(header.blocks_end, size_);
    if (header.blocks_end > size_) {
      damage(fmt::format("cut: {} of {} bytes are there", size_, header.blocks_end));
    } else if (header.blocks_end < begin || (header.closed != 0 && header.blocks_end < size_)) {
      damage(fmt::format("the header says that {} bytes are used, of {}", header.blocks_end, size_));
      end = size_;
    }
    Window window(file_, end);
    for (std::uint64_t at = begin; at < end;) {
      const std::uint64_t length = read_block(window, at);
      if (length == 0 && ++false_blocks_ > max_false_blocks) {
        damage(fmt::format("too many broken blocks; given up at byte {}", at));
        break;
      }
      at = length > 0 ? at + length : window.find_magic(at + 1);
    }
  }

  // Takes the block at `at` and returns its length; 0 where there is none that is whole.
  std::uint64_t read_block(Window& window, std::uint64_t at) {
    BlockHeader block;
    const std::span<const std::byte> head = window.at(at, sizeof block);
    const std::size_t head_bytes = read_block_header(head, block);
    if (head_bytes == 0) {
      damage(fmt::format("cut in a block's header, at byte {}", at));
      return 0;
    }
    if (std::memcmp(block.magic, block_magic, sizeof block.magic) != 0) {
      damage(fmt::format("no block where one should start, at byte {}", at));
      return 0;
    }
    if (block.payload_bytes > max_payload_bytes) {
      damage(fmt::format("the block at byte {} has a size out of range", at));
      return 0;
    }
    const std::span<const std::byte> payload = window.at(at + head_bytes, block.payload_bytes);
    if (payload.size() < block.payload_bytes) {
      damage(fmt::format("the block at byte {} is cut", at));
      note_broken(block);
      return 0;
    }
    Piece piece{block.track, block.sequence, block.thread_id, {}};
    const bool decodes = !summaries_ || block.kind != block_kind_summary;
    const char* wrong = decodes ? decoder_.decode(block, payload, piece.slots) : check_block(block, payload);
    if (wrong != nullptr) {
      damage(fmt::format("the block at byte {} is broken: {}", at, wrong));
      note_broken(block);
      return 0;
    }
    piece.has_lost = (block.contents & has_lost) != 0;
    if (!sequences_.insert(piece.sequence).second) {
      damage(fmt::format("the block at byte {} is there twice", at));
    } else if (summaries_) {
      if (decodes) summarize(piece.slots.data(), piece.slots.size(), block);
      summaries_->push_back(block);
    } else {
      pieces_.push_back(std::move(piece));
    }
    return head_bytes + block.payload_bytes;
  }

  void note_broken(const BlockHeader& block) {
    constexpr std::size_t most = 1000;
    if (broken_.size() < most) broken_.push_back(block);
  }

  void add_summary(const Piece& piece) {
    BlockHeader made{};
    std::memcpy(made.magic, block_magic, sizeof made.magic);
    made.kind = block_kind_summary;
    made.track = piece.track;
    made.slots = static_cast<std::uint32_t>(piece.slots.size());
    made.sequence = piece.sequence;
    made.thread_id = piece.thread_id;
    summarize(piece.slots.data(), piece.slots.size(), made);
    summaries_->push_back(made);
  }

  // From the events `lost`, from the table of those that no event says yet, and from broken blocks.
  void collect_lost() {
    std::set<std::pair<std::uint32_t, std::uint64_t>> said;  // track and first tick
    for (const Piece& piece : pieces_) {
      if (!piece.has_lost) continue;
      for (std::size_t at = 0; at < piece.slots.size(); at += 1 + extension_slots(piece.slots[at])) {
        if (type_of(piece.slots[at]) != EventType::lost) continue;
        trace_.lost.push_back(stretch_of(piece, piece.slots[at], piece.slots[at + 1]));
        said.emplace(piece.track, trace_.lost.back().first_ticks);
      }
    }
    for (const LostStretch& lost : ongoing_) {
      if (!said.contains({lost.track, lost.first_ticks})) trace_.lost.push_back(lost);
    }
    for (const BlockHeader& block : broken_) add_broken(block);
    std::ranges::stable_sort(trace_.lost, {},
                             [](const LostStretch& lost) { return std::pair(lost.track, lost.first_ticks); });
  }

  // The header of a broken block may be right all the same: it is believed where the track that it names has other
  // blocks, which say between which times the block was.
  void add_broken(const BlockHeader& block) {
    if (sequences_.contains(block.sequence)) return;
    const Piece *before = nullptr, *after = nullptr;
    for (const Piece& piece : pieces_) {
      if (piece.track != block.track || piece.thread_id != block.thread_id || piece.slots.empty()) continue;
      if (piece.sequence < block.sequence) {
        if (before == nullptr || piece.sequence > before->sequence) before = &piece;
      } else if (after == nullptr || piece.sequence < after->sequence) {
        after = &piece;
      }
    }
    if (before == nullptr && after == nullptr) return;
    LostStretch lost{block.track, block.thread_id, 0, std::numeric_limits<std::uint64_t>::max()};
    lost.cause = lost_by_damage;
    BlockHeader of{};
    if (before != nullptr) {
      summarize(before->slots.data(), before->slots.size(), of);
      lost.first_ticks = of.last_ticks;
    }
    if (after != nullptr) {
      summarize(after->slots.data(), after->slots.size(), of);
      lost.last_ticks = std::max(lost.first_ticks, of.first_ticks);
    }
    // Its own times are narrower, and believed where they lie between.
    if (block.kind == block_kind_summary && block.first_ticks >= lost.first_ticks &&
        block.first_ticks <= block.last_ticks && block.last_ticks <= lost.last_ticks) {
      lost.first_ticks = block.first_ticks;
      lost.last_ticks = block.last_ticks;
    }
    trace_.lost.push_back(lost);
  }

  void join_tracks() {
    std::sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) {
      return std::pair(a.track, a.sequence) < std::pair(b.track, b.sequence);
    });
    for (std::size_t first = 0; first < pieces_.size();) {
      std::size_t slots = 0, last = first;
      for (; last < pieces_.size() && pieces_[last].track == pieces_[first].track; ++last) {
        slots += pieces_[last].slots.size();
      }
      Track track{pieces_[first].track, pieces_[first].thread_id, {}};
      track.slots.reserve(slots);
      for (; first < last; ++first) {
        const std::vector<Slot> part = std::move(pieces_[first].slots);
        track.slots.insert(track.slots.end(), part.begin(), part.end());
      }
      trace_.tracks.push_back(std::move(track));
    }
  }

  File file_;
  std::uint64_t size_ = 0;
  TraceFile trace_;
  BlockDecoder decoder_;
  std::vector<Piece> pieces_;
  std::set<std::uint64_t> sequences_;
  std::vector<LostStretch> ongoing_;  // of the table
  std::vector<BlockHeader> broken_;   // of what looked like a block
  std::optional<std::vector<BlockHeader>> summaries_;
  int damages_ = 0;
  int false_blocks_ = 0;
};

}  // namespace

bool is_trace_file(const std::filesystem::path& path) {
  char magic[sizeof file_magic];
  const int descriptor = open_without_waiting(path);
  if (descriptor < 0) return false;
  const ssize_t got = pread(descriptor, magic, sizeof magic, 0);
  close(descriptor);
  return got == sizeof magic && std::memcmp(magic, file_magic, sizeof magic) == 0;
}

TraceFile read_trace_file(const std::filesystem::path& path) { return Reader(path).read(); }

TraceSummary read_trace_summary(const std::filesystem::path& path) { return Reader(path).read_summary(); }

TraceFile read_trace_header(const std::filesystem::path& path) { return Reader(path).read_header_alone(); }

}  // namespace paceline::format
