// SPDX-License-Identifier: Apache-2.0
// A file that is read piece by piece. The reader does not map it: another program that cuts a mapped file short would
// end the reader by SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace paceline::format {

class InputFile {
 public:
  // Throws Error where the file cannot be opened or is not a regular file.
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // Throws Error with the file's path and `what`.
  [[noreturn]] void fail(const std::string& what) const;

  // The present length in bytes. It grows while a process records.
  std::uint64_t size() const;

  // The first place from `offset` on that is in no hole; `end` where only a hole follows.
  std::uint64_t next_data(std::uint64_t offset, std::uint64_t end) const;

  // Reads up to `bytes` bytes from `offset` on, fewer only at the end of the file, and returns their number. Throws
  // Error where the system fails.
  std::size_t read(std::uint64_t offset, void* out, std::size_t bytes) const;

 private:
  std::string name_;
  int descriptor_;
};

// The descriptor of an open file, or -1 and errno. Opening a FIFO does not wait for its writer, and a terminal does not
// become this process's own.
int open_without_waiting(const std::filesystem::path& path);

// A stretch of a file in memory, moved along as needed.
class FileWindow {
 public:
  // Ends the file at `end`, in bytes.
  FileWindow(const InputFile& file, std::uint64_t end) : file_(file), end_(end) {}

  // `bytes` bytes from `offset` on, fewer at the end. Valid until the next call.
  std::span<const std::byte> at(std::uint64_t offset, std::size_t bytes);

  // The place of the next block magic from `offset` on; the end where there is none.
  std::uint64_t find_magic(std::uint64_t offset);

 private:
  // Larger than any block, and small enough to stay in a core's cache while it is hashed.
  static constexpr std::size_t window_bytes = 256 * 1024;
  const InputFile& file_;
  std::uint64_t end_;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace paceline::format
