#include "profiler/format/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "profiler/format/block.h"
#include "profiler/format/block_decoder.h"
#include "profiler/format/error.h"
#include "profiler/format/hash.h"

namespace paceline::format {
namespace {

// How often a damaged file may look like having a block where it has none, before the search for more is given up.
constexpr int max_false_blocks = 10'000;

class File {
 public:
  explicit File(const std::filesystem::path& path)
      : name_(path.string()), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
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
};

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
    join_tracks();
    if (damages_ > 1) trace_.damage += fmt::format(" (and {} more)", damages_ - 1);
    return std::move(trace_);
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
    if (header.version != file_version) {
      file_.fail(fmt::format("version {} of the trace format, but this program reads version {}; use a newer Paceline",
                             header.version, file_version));
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
    std::vector<std::byte> bytes(chunk_bytes);
    const std::uint64_t end = header.header_bytes + header.live_bytes;
    for (std::uint64_t at = header.header_bytes; at < end; at += chunk_bytes) {
      ChunkHeader chunk;
      if (at >= size_ || file_.read(at, &chunk, sizeof chunk) < sizeof chunk) {
        damage(fmt::format("cut in the live area, at byte {}", size_));
        break;
      }
      if (chunk.state == static_cast<std::uint32_t>(ChunkState::free)) continue;
      if (chunk.state > static_cast<std::uint32_t>(ChunkState::full)) {
        damage(fmt::format("the chunk at byte {} has an unknown state", at));
        continue;
      }
      const std::size_t got = file_.read(at, bytes.data(), chunk_bytes);
      if (got < chunk_bytes) damage(fmt::format("cut in the live area, at byte {}", size_));
      ChunkHeader after;
      if (file_.read(at, &after, sizeof after) < sizeof after || after.state == 0 || after.sequence != chunk.sequence) {
        continue;
      }
      Piece piece{chunk.track, chunk.sequence, chunk.thread_id, {}};
      piece.slots.resize((std::max(got, sizeof chunk) - sizeof chunk) / sizeof(Slot));
      std::memcpy(piece.slots.data(), bytes.data() + sizeof chunk, piece.slots.size() * sizeof(Slot));
      const std::size_t whole = whole_slots(piece.slots.data(), piece.slots.size());
      if (whole < piece.slots.size() && piece.slots[whole].high != 0 && got == chunk_bytes) {
        damage(fmt::format("the chunk at byte {} has a broken event in slot {}", at, whole));
      }
      piece.slots.resize(whole);
      live.push_back(std::move(piece));
    }
    return live;
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
    if (head.size() < sizeof block) {
      damage(fmt::format("cut in a block's header, at byte {}", at));
      return 0;
    }
    std::memcpy(&block, head.data(), sizeof block);
    if (std::memcmp(block.magic, block_magic, sizeof block.magic) != 0) {
      damage(fmt::format("no block where one should start, at byte {}", at));
      return 0;
    }
    if (block.payload_bytes > max_payload_bytes) {
      damage(fmt::format("the block at byte {} has a size out of range", at));
      return 0;
    }
    const std::span<const std::byte> payload = window.at(at + sizeof block, block.payload_bytes);
    if (payload.size() < block.payload_bytes) {
      damage(fmt::format("the block at byte {} is cut", at));
      return 0;
    }
    Piece piece{block.track, block.sequence, block.thread_id, {}};
    if (const char* wrong = decoder_.decode(block, payload, piece.slots)) {
      damage(fmt::format("the block at byte {} is broken: {}", at, wrong));
      return 0;
    }
    if (sequences_.insert(piece.sequence).second) {
      pieces_.push_back(std::move(piece));
    } else {
      damage(fmt::format("the block at byte {} is there twice", at));
    }
    return sizeof block + block.payload_bytes;
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
  int damages_ = 0;
  int false_blocks_ = 0;
};

}  // namespace

bool is_trace_file(const std::filesystem::path& path) {
  char magic[sizeof file_magic];
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const ssize_t got = pread(descriptor, magic, sizeof magic, 0);
  close(descriptor);
  return got == sizeof magic && std::memcmp(magic, file_magic, sizeof magic) == 0;
}

TraceFile read_trace_file(const std::filesystem::path& path) { return Reader(path).read(); }

TraceFile read_trace_header(const std::filesystem::path& path) { return Reader(path).read_header_alone(); }

}  // namespace paceline::format
