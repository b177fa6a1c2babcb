// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format (https://protobuf.dev/programming-guides/encoding/), as far as reading needs it: the fields of
// a message, one after the other, without a copy.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace paceline::analysis::perfetto {

// A field's number and wire type as they stand in the file. A field with another wire type than the expected one is
// unknown, as it is to Protobuf.
constexpr std::uint64_t integer_tag(std::uint32_t number) { return std::uint64_t{number} << 3; }
constexpr std::uint64_t fixed64_tag(std::uint32_t number) { return std::uint64_t{number} << 3 | 1; }
constexpr std::uint64_t text_tag(std::uint32_t number) { return std::uint64_t{number} << 3 | 2; }  // also a message

struct Field {
  std::uint64_t tag = 0;
  std::uint64_t value = 0;  // of an integer or a fixed-size number
  std::string_view bytes;   // of a text or a message

  std::int64_t whole() const { return static_cast<std::int64_t>(value); }
  double real() const { return std::bit_cast<double>(value); }
};

class Fields {
 public:
  explicit Fields(std::string_view message) : at_(message.data()), end_(message.data() + message.size()) {}

  // The next field; false at the end, and where the message is damaged.
  [[gnu::always_inline]] bool next(Field& field) {
    if (at_ == end_) return false;
    if (!varint(at_, end_, field.tag) || field.tag < 8) return fail();
    if ((field.tag & 7) == 0) return varint(at_, end_, field.value) || fail();  // as most
    switch (field.tag & 7) {
      case 1:
        return fixed(8, field.value);
      case 2: {
        std::uint64_t size = 0;
        if (!varint(at_, end_, size) || size > static_cast<std::uint64_t>(end_ - at_)) return fail();
        field.bytes = {at_, static_cast<std::size_t>(size)};
        at_ += size;
        return true;
      }
      case 5:
        return fixed(4, field.value);
      default:
        return fail();
    }
  }
  bool damaged() const { return damaged_; }

  // A number of up to 10 bytes, 7 bits in each. False where the text ends first or the number is longer.
  [[gnu::always_inline]] static bool varint(const char*& at, const char* end, std::uint64_t& value) {
    if (at != end && static_cast<unsigned char>(*at) < 128) {  // as most numbers
      value = static_cast<unsigned char>(*at++);
      return true;
    }
    if (end - at >= 2 && static_cast<unsigned char>(at[1]) < 128) {
      value = (static_cast<unsigned char>(at[0]) & 127U) | static_cast<unsigned>(at[1]) << 7;
      at += 2;
      return true;
    }
    std::uint64_t word = ~std::uint64_t{0};
    if (end - at >= 8) std::memcpy(&word, at, 8);
    const std::uint64_t last = ~word & 0x8080808080808080;
    if (last == 0) {  // a call would keep `at` in memory
      value = 0;
      for (int shift = 0; at != end && shift < 64; shift += 7) {
        const auto byte = static_cast<unsigned char>(*at++);
        value |= std::uint64_t{byte & 127U} << shift;
        if (byte < 128) return true;
      }
      return false;
    }
    word &= last ^ (last - 1);  // up to the first byte below 128
    at += std::countr_zero(last) / 8 + 1;
    word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
    word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
    value = (word & 0x000000000fffffff) | (word & 0x0fffffff00000000) >> 4;
    return true;
  }

 private:
  [[gnu::always_inline]] bool fixed(std::size_t size, std::uint64_t& value) {
    if (static_cast<std::size_t>(end_ - at_) < size) return fail();
    value = 0;
    std::memcpy(&value, at_, size);
    at_ += size;
    return true;
  }
  bool fail() {
    damaged_ = true;
    return false;
  }

  const char* at_;
  const char* end_;
  bool damaged_ = false;
};

}  // namespace paceline::analysis::perfetto
