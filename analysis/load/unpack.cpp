// SPDX-License-Identifier: Apache-2.0
#include "analysis/load/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "profiler/format/error.h"

namespace paceline::analysis {

namespace fs = std::filesystem;

namespace unpacking {

constexpr std::size_t read_bytes = 256 * 1024;
constexpr std::size_t most_members = 1'000'000;

using Archive = std::unique_ptr<archive, decltype(&archive_read_free)>;

bool is_tar(std::string_view bytes) { return bytes.size() >= 512 && bytes.substr(257, 5) == "ustar"; }

bool is_compressed(std::string_view bytes) {
  using namespace std::string_view_literals;
  return bytes.starts_with("\x1f\x8b"sv) || bytes.starts_with("\x28\xb5\x2f\xfd"sv) ||
         bytes.starts_with("\xfd\x37zXZ\0"sv) || (bytes.starts_with("BZh"sv) && bytes.substr(4, 6) == "1AY&SY"sv);
}

enum class Content { one_file, members };

// Opens a file for libarchive; null and `error` where that fails.
Archive open_archive(const fs::path& path, Content content, std::string& error) {
  Archive opened(archive_read_new(), archive_read_free);
  if (opened == nullptr) {
    error = "out of memory";
    return opened;
  }
  archive* const input = opened.get();
  archive_read_support_filter_gzip(input);
  archive_read_support_filter_zstd(input);
  archive_read_support_filter_xz(input);
  archive_read_support_filter_bzip2(input);
  if (content == Content::one_file) {
    archive_read_support_format_raw(input);
  } else {
    archive_read_support_format_tar(input);
    archive_read_support_format_zip(input);
  }
  if (archive_read_open_filename(input, path.c_str(), read_bytes) == ARCHIVE_OK) return opened;
  const char* text = archive_error_string(input);
  error = text != nullptr ? text : "cannot be opened";
  return {nullptr, archive_read_free};
}

std::string error_of(archive* input) {
  const char* text = archive_error_string(input);
  return text != nullptr ? text : "unknown format";
}

// The contents of the member at which an input stands, block by block. archive_read_data would drop what it has read of
// a block before it meets damage.
class Blocks {
 public:
  explicit Blocks(archive* input) : input_(input) {}

  enum class Outcome { block, end, damage };
  // The next stretch of the contents. Holes of sparse files come as stretches of zeros.
  Outcome next(std::string_view& bytes) {
    static constexpr char zeros[4096] = {};
    while (position_ >= at_ && rest_.empty()) {
      const void* block = nullptr;
      std::size_t size = 0;
      const int got = archive_read_data_block(input_, &block, &size, &at_);
      if (got == ARCHIVE_RETRY) continue;
      if (got == ARCHIVE_EOF) return Outcome::end;
      if (got < ARCHIVE_WARN) return Outcome::damage;
      rest_ = {static_cast<const char*>(block), size};
    }
    const std::int64_t hole = std::max<std::int64_t>(at_ - position_, 0);
    bytes = hole > 0 ? std::string_view(zeros, static_cast<std::size_t>(std::min<std::int64_t>(hole, sizeof zeros)))
                     : std::exchange(rest_, {});
    position_ += static_cast<std::int64_t>(bytes.size());
    return Outcome::block;
  }

 private:
  archive* input_;
  std::string_view rest_ = {};
  std::int64_t at_ = 0, position_ = 0;  // of the rest, and of what was returned
};

// The member's path below the folder of the archive, or nothing where it leads out of that.
std::optional<fs::path> inner_path(std::string_view name) {
  fs::path inner;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part == "..") return std::nullopt;
    if (!part.empty() && part != ".") inner /= part;
    begin = end + 1;
  }
  if (inner.empty()) return std::nullopt;
  return inner;
}

}  // namespace unpacking

// A file that is written below the temporary folder, within the limits.
class UnpackedFile {
 public:
  UnpackedFile(Unpacker& unpacker, const TraceFile& packed, const fs::path& target)
      : unpacker_(unpacker), packed_(packed) {
    std::error_code ignored;
    packed_bytes_ = fs::file_size(packed.path, ignored);
    if (ignored) packed_bytes_ = 0;
    descriptor_ = open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (descriptor_ < 0) failure_ = std::strerror(errno);
  }
  ~UnpackedFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;

  // Why the file could not be made, or "".
  const std::string& failure() const { return failure_; }

  // Writes the contents of the member at which `input` stands. `total` counts what the packed file has unpacked to.
  // Returns the damage that ended them early, or "".
  std::string fill(archive* input, std::uint64_t& total) {
    unpacking::Blocks blocks(input);
    std::int64_t consumed = archive_filter_bytes(input, -1);
    for (std::string_view bytes;;) {
      const auto outcome = blocks.next(bytes);
      if (outcome == unpacking::Blocks::Outcome::end) return "";
      if (outcome == unpacking::Blocks::Outcome::damage) return unpacking::error_of(input);
      total += bytes.size();
      check(bytes.size(), total);
      write_all(bytes.data(), bytes.size());
      const std::int64_t now = archive_filter_bytes(input, -1);
      if (now > consumed) unpacker_.counter_.add(static_cast<std::uint64_t>(now - consumed));
      consumed = now;
    }
  }

 private:
  void check(std::uint64_t more, std::uint64_t total) {
    if (total > always_allowed_bytes && total / most_times_larger > packed_bytes_) {
      throw Error(
          fmt::format("{}: unpacks to more than {} times its size: if that is right, unpack it by hand and "
                      "give the result",
                      packed_.name, most_times_larger));
    }
    if ((unpacker_.written_ += more) > unpacker_.room_) disk_full();
  }

  [[noreturn]] void disk_full() const {
    throw Error(
        fmt::format("{}: too little free disk space to unpack it: set TMPDIR to a folder with more", packed_.name));
  }

  void write_all(const char* bytes, std::size_t size) {
    while (size > 0) {
      const ssize_t put = write(descriptor_, bytes, size);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0 && (errno == ENOSPC || errno == EDQUOT)) disk_full();
      if (put < 0) throw Error(fmt::format("{}: cannot be unpacked: {}", packed_.name, std::strerror(errno)));
      bytes += put;
      size -= static_cast<std::size_t>(put);
    }
  }

  Unpacker& unpacker_;
  const TraceFile& packed_;
  std::uint64_t packed_bytes_ = 0;
  int descriptor_ = -1;
  std::string failure_;
};

PackedHead packed_head(const fs::path& file) {
  PackedHead head;
  std::string first(512, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(first.data(), static_cast<std::streamsize>(first.size()));
  first.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  if (unpacking::is_tar(first) || first.starts_with("PK\3\4") || first.starts_with("PK\5\6")) {
    head.packing = Packing::archive;
  }
  if (head.packing == Packing::archive || !unpacking::is_compressed(first)) return head;
  head.packing = Packing::compressed;
  const unpacking::Archive opened = unpacking::open_archive(file, unpacking::Content::one_file, head.damage);
  archive_entry* entry = nullptr;
  if (opened == nullptr) return head;
  if (archive_read_next_header(opened.get(), &entry) != ARCHIVE_OK) {
    head.damage = unpacking::error_of(opened.get());
    return head;
  }
  unpacking::Blocks blocks(opened.get());
  while (head.bytes.size() < head_bytes) {
    std::string_view bytes;
    const auto outcome = blocks.next(bytes);
    if (outcome == unpacking::Blocks::Outcome::damage) head.damage = unpacking::error_of(opened.get());
    head.whole = outcome == unpacking::Blocks::Outcome::end;
    if (outcome != unpacking::Blocks::Outcome::block) break;
    head.bytes += bytes.substr(0, head_bytes - head.bytes.size());
  }
  if (unpacking::is_tar(head.bytes)) head.packing = Packing::archive;
  return head;
}

std::string Unpacker::unpack_file(const TraceFile& packed, const fs::path& target) {
  std::string error;
  const unpacking::Archive input = unpacking::open_archive(packed.path, unpacking::Content::one_file, error);
  archive_entry* entry = nullptr;
  if (input == nullptr) return fmt::format("{}: {}", packed.name, error);
  if (archive_read_next_header(input.get(), &entry) != ARCHIVE_OK) {
    return fmt::format("{}: its compression is damaged: {}", packed.name, unpacking::error_of(input.get()));
  }
  UnpackedFile file(*this, packed, target);
  if (!file.failure().empty()) throw Error(fmt::format("{}: cannot be unpacked: {}", packed.name, file.failure()));
  std::uint64_t total = 0;
  const std::string damage = file.fill(input.get(), total);
  if (damage.empty()) return "";
  return fmt::format("{}: its compression is damaged: {}: only the {} bytes before that were read", packed.name, damage,
                     total);
}

Unpacker::Members Unpacker::unpack_archive(const TraceFile& packed, const fs::path& target) {
  Members members;
  std::string error;
  const unpacking::Archive input = unpacking::open_archive(packed.path, unpacking::Content::members, error);
  if (input == nullptr) throw Error(fmt::format("{}: {}", packed.name, error));
  std::uint64_t total = 0;
  std::size_t seen = 0, no_files = 0, outside = 0, not_made = 0;
  for (archive_entry* entry = nullptr;;) {
    const int got = archive_read_next_header(input.get(), &entry);
    if (got == ARCHIVE_EOF) break;
    if (got == ARCHIVE_RETRY) continue;
    if (got == ARCHIVE_FATAL) {
      members.notes.push_back(fmt::format("{}: the archive is damaged: {}: the {} files before that were read",
                                          packed.name, unpacking::error_of(input.get()), members.files.size()));
      break;
    }
    if (++seen > unpacking::most_members) {
      throw Error(fmt::format("{}: has more than {} members: unpack it by hand and give the result", packed.name,
                              unpacking::most_members));
    }
    if (archive_entry_is_encrypted(entry) != 0) {
      throw Error(fmt::format("{}: is encrypted: unpack it with its password and give the result", packed.name));
    }
    if (archive_entry_filetype(entry) == AE_IFDIR) continue;
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) {
      ++no_files;
      continue;
    }
    const char* name = archive_entry_pathname(entry);
    if (name == nullptr) name = archive_entry_pathname_utf8(entry);
    const std::string text = name != nullptr ? name : fmt::format("member-{}", seen);
    const std::optional<fs::path> inner = unpacking::inner_path(text);
    if (!inner) {
      ++outside;
      continue;
    }
    std::error_code failed;
    fs::create_directories((target / *inner).parent_path(), failed);
    UnpackedFile file(*this, packed, target / *inner);
    if (failed || !file.failure().empty()) {
      ++not_made;
      continue;
    }
    TraceFile member{target / *inner, packed.name + "/" + inner->string()};
    if (const std::string damage = file.fill(input.get(), total); !damage.empty()) {
      members.notes.push_back(fmt::format("{}: the archive is damaged: {}", member.name, damage));
    }
    members.files.push_back(std::move(member));
  }
  const auto note = [&](std::size_t count, const char* what) {
    if (count > 0) members.notes.push_back(fmt::format("{}: {} {} left out", packed.name, count, what));
  };
  note(no_files, "links and devices");
  note(outside, "members whose paths lead out of the archive");
  note(not_made, "members with equal or impossible names");
  return members;
}

}  // namespace paceline::analysis
