// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format (https://protobuf.dev/programming-guides/encoding/), as far as writing needs it.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace paceline::analysis {

// The fields of one message. `field` is the number in the .proto file.
class ProtoMessage {
 public:
  void clear() { bytes_.clear(); }
  bool empty() const { return bytes_.empty(); }
  std::string_view bytes() const { return bytes_; }

  // Of the types int32, int64, uint32, uint64, bool and enums.
  void integer(std::uint32_t field, std::uint64_t value) {
    tag(field, 0);
    varint(value);
  }
  void fixed64(std::uint32_t field, std::uint64_t value) {
    tag(field, 1);
    char little[8];
    for (int i = 0; i < 8; ++i) little[i] = static_cast<char>(value >> 8 * i);
    bytes_.append(little, 8);
  }
  void real(std::uint32_t field, double value) { fixed64(field, std::bit_cast<std::uint64_t>(value)); }
  // Of the types string and bytes. Strings must be UTF-8.
  void text(std::uint32_t field, std::string_view value) {
    begin(field, value.size());
    bytes_ += value;
  }
  // Begins a text or message of that many bytes, which are to follow.
  void begin(std::uint32_t field, std::size_t size) {
    tag(field, 2);
    varint(size);
  }
  void message(std::uint32_t field, const ProtoMessage& value) { text(field, value.bytes_); }
  // The fields of another message as fields of this one.
  void append(std::string_view fields) { bytes_ += fields; }

 private:
  void tag(std::uint32_t field, std::uint32_t wire_type) { varint(field << 3 | wire_type); }
  void varint(std::uint64_t value) {
    if (value < 128) {
      bytes_ += static_cast<char>(value);
      return;
    }
    char encoded[10];
    int size = 0;
    for (; value >= 128; value >>= 7) encoded[size++] = static_cast<char>(value | 128);
    encoded[size++] = static_cast<char>(value);
    bytes_.append(encoded, static_cast<std::size_t>(size));
  }

  std::string bytes_;
};

}  // namespace paceline::analysis
