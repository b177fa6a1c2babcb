// SPDX-License-Identifier: Apache-2.0
// How OTF2 stores things in its files: numbers of 1 to 9 bytes, texts, records with their length, and chunks of
// records. The C library reads past the end of damaged records and does not return from some damaged chunks, so
// Paceline reads the files itself. Here every access is checked.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>
#include <vector>

namespace paceline::analysis {

// Bytes that are read in their order. What is malformed or reaches past the end gives 0, ends the reading and sets
// failed().
class Otf2Bytes {
 public:
  Otf2Bytes() = default;
  Otf2Bytes(std::span<const std::uint8_t> bytes, bool big_endian)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()), big_endian_(big_endian) {}

  bool failed() const { return failed_; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

  std::uint8_t byte() { return at_ != end_ ? *at_++ : static_cast<std::uint8_t>(fail()); }
  // A number of this many bytes, at most 8.
  std::uint64_t fixed(std::size_t bytes) {
    if (bytes > 8 || bytes > left()) return fail();
    if (bytes == 0) return 0;
    std::uint64_t value = 0;
    if (left() >= sizeof value) {
      std::memcpy(&value, at_, sizeof value);
    } else {
      std::memcpy(&value, at_, bytes);
    }
    at_ += bytes;
    const std::size_t unused_bits = 64 - 8 * bytes;
    return big_endian_ ? __builtin_bswap64(value) >> unused_bits : value << unused_bits >> unused_bits;
  }
  // A number with the count of its bytes before it. The largest number of all means "undefined".
  std::uint64_t number() {
    const std::uint8_t bytes = byte();
    return bytes == 0xff ? ~std::uint64_t{0} : fixed(bytes);
  }
  std::uint32_t number32() { return static_cast<std::uint32_t>(number()); }
  double real() { return std::bit_cast<double>(fixed(8)); }
  // Up to its zero byte, which is passed over.
  std::string_view text() {
    const void* zero = left() > 0 ? std::memchr(at_, 0, left()) : nullptr;
    if (zero == nullptr) return fail(), std::string_view();
    const std::string_view found(reinterpret_cast<const char*>(at_), static_cast<const char*>(zero));
    at_ += found.size() + 1;
    return found;
  }
  // The contents of a record, whose length stands before it. Later versions of the format append fields to records.
  Otf2Bytes record() {
    std::uint64_t length = byte();
    if (length == 0xff) length = fixed(8);
    if (length > left()) return fail(), Otf2Bytes();
    const Otf2Bytes contents({at_, static_cast<std::size_t>(length)}, big_endian_);
    at_ += length;
    return contents;
  }

 private:
  std::uint64_t fail() {
    failed_ = true;
    at_ = end_;
    return 0;
  }

  const std::uint8_t *at_ = nullptr, *end_ = nullptr;
  bool big_endian_ = false, failed_ = false;
};

// The records that stand for the file's own structure. All other records have a higher type.
enum class Otf2Mark : std::uint8_t {
  end_of_chunk = 0,
  end_of_buffer = 1,
  end_of_file = 2,
  head = 3,
  time = 5,
  attributes = 6,
  first_record = 10  // the lowest type of an event; definitions start at 5
};

// A file's chunks, one after the other. All have the same size but for the last one, which may be shorter.
class Otf2Chunks {
 public:
  // `chunk_bytes` is the archive's size of chunks.
  Otf2Chunks(const std::filesystem::path& path, std::uint64_t chunk_bytes);

  bool exists() const { return file_.is_open(); }
  // Reads the next chunk whose head is valid. Skips and counts the others. Returns false at the end of the file.
  bool next();
  Otf2Bytes& bytes() { return bytes_; }
  // The numbers of the chunk's first and last event, counted from 1. Both are 0 if the head has no valid numbers.
  std::uint64_t first_event() const { return first_event_; }
  std::uint64_t last_event() const { return last_event_; }
  // The number of chunks whose head is not valid.
  std::uint64_t bad_heads() const { return bad_heads_; }

 private:
  std::ifstream file_;
  std::uint64_t bytes_of_file_ = 0, left_ = 0;  // left_: bytes after this chunk
  std::vector<std::uint8_t> chunk_;
  Otf2Bytes bytes_;
  std::uint64_t first_event_ = 0, last_event_ = 0, bad_heads_ = 0;
};

}  // namespace paceline::analysis
