// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "profiler/format/error.h"
#include "profiler/format/layout.h"

namespace paceline::format {

int open_without_waiting(const std::filesystem::path& path) {
  return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

InputFile::InputFile(const std::filesystem::path& path)
    : name_(path.string()), descriptor_(open_without_waiting(path)) {
  if (descriptor_ < 0) fail(std::strerror(errno));
  struct stat status {};
  const int failed = fstat(descriptor_, &status) != 0 ? errno : 0;
  if (failed == 0 && S_ISREG(status.st_mode)) return;
  close(descriptor_);
  fail(failed != 0 ? std::strerror(failed) : "not a regular file");
}

InputFile::~InputFile() { close(descriptor_); }

void InputFile::fail(const std::string& what) const { throw Error(fmt::format("{}: {}", name_, what)); }

std::uint64_t InputFile::size() const {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) fail(std::strerror(errno));
  return static_cast<std::uint64_t>(status.st_size);
}

std::uint64_t InputFile::next_data(std::uint64_t offset, std::uint64_t end) const {
  const off_t found = lseek(descriptor_, static_cast<off_t>(offset), SEEK_DATA);
  if (found < 0) return errno == ENXIO ? end : offset;  // any other error: the file system does not know its holes
  return static_cast<std::uint64_t>(found);
}

std::size_t InputFile::read(std::uint64_t offset, void* out, std::size_t bytes) const {
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

std::span<const std::byte> FileWindow::at(std::uint64_t offset, std::size_t bytes) {
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

std::uint64_t FileWindow::find_magic(std::uint64_t offset) {
  while (offset + sizeof block_magic <= end_) {
    // The magic has no zero byte, so it cannot begin in a hole.
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

}  // namespace paceline::format
