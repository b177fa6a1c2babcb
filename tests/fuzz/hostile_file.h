// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets of .pace files share: bytes that the fuzzer made become a file or the events of a block.
//
// The first byte of an input selects what the others are: 0 = a file; 1 = a file whose checksums are corrected first,
// because no fuzzer guesses them; 2 = the columns of a block, after the number of slots in two bytes.
#pragma once

#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "profiler/format/block.h"
#include "profiler/format/block_decoder.h"
#include "profiler/format/hash.h"

namespace paceline::fuzz {

using namespace paceline::format;

enum class InputKind { file, file_with_checksums, columns };
inline InputKind kind_of(std::uint8_t first) { return static_cast<InputKind>(first % 3); }

inline void require(bool holds) {
  if (!holds) std::abort();
}

template <typename T>
T load(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline void put_checksums_right(std::vector<std::uint8_t>& file) {
  if (file.size() < sizeof(FileHeader)) return;
  auto header = load<FileHeader>(file.data());
  const std::size_t text_bytes = header.text_bytes;
  if (text_bytes <= file.size() - sizeof header) header.text_hash = XXH3_64bits(&file[sizeof header], text_bytes);
  header.hash = header_hash(header);
  std::memcpy(file.data(), &header, sizeof header);
  for (std::size_t at = sizeof header; at + sizeof block_magic <= file.size(); ++at) {
    if (std::memcmp(&file[at], block_magic, sizeof block_magic) != 0) continue;
    BlockHeader block;
    const std::size_t head = read_block_header(std::as_bytes(std::span(file).subspan(at)), block);
    if (head == 0 || block.payload_bytes > file.size() - at - head) continue;
    const std::uint64_t hash = block_hash(block, file.data() + at + head);
    std::memcpy(&file[at + head - sizeof hash], &hash, sizeof hash);
  }
}

// A file in memory that has a path.
class MemoryFile {
 public:
  const std::string& write(std::span<const std::uint8_t> bytes) {
    require(ftruncate(file_, 0) == 0);
    require(pwrite(file_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    return path_;
  }

 private:
  const int file_ = memfd_create("fuzz", 0);
  const std::string path_ = "/proc/self/fd/" + std::to_string(file_);
};

// The events of a block with these columns. Empty where they cannot be decoded.
inline std::vector<Slot> slots_of_columns(std::span<const std::uint8_t> bytes) {
  static BlockDecoder decoder;
  std::vector<Slot> slots;
  if (bytes.size() < 2 || bytes.size() - 2 > max_raw_bytes) return slots;
  const std::span<const std::uint8_t> columns = bytes.subspan(2);
  std::vector<std::byte> payload(ZSTD_compressBound(columns.size()));
  payload.resize(ZSTD_compress(payload.data(), payload.size(), columns.data(), columns.size(), 1));
  BlockHeader header{};
  header.kind = block_kind_summary;
  header.slots = load<std::uint16_t>(bytes.data());
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.raw_bytes = static_cast<std::uint32_t>(columns.size());
  header.hash = block_hash(header, payload.data());
  const bool decoded = decoder.decode(header, payload, slots) == nullptr;
  require(slots.size() == (decoded ? header.slots : 0U));
  return slots;
}

}  // namespace paceline::fuzz
