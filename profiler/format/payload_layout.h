// SPDX-License-Identifier: Apache-2.0
// The layout of the binary payloads that NVTX's schemas describe. Recorder and reader must agree on it.
//
// The numbers are those of nvToolsExtPayload.h, which the analysis does not include; sizes are those of 64-bit Linux.
#pragma once

#include <algorithm>
#include <cstdint>

namespace paceline::format::payload {

// Numbers below first_schema are predefined types. The recorder assigns numbers from first_schema on, and the
// program chooses its own from first_own_schema on.
inline constexpr std::uint32_t first_schema = 1024, first_own_schema = 1U << 24;

enum EntryFlag : std::uint32_t {
  pointer = 1 << 1,
  offset_from_base = 1 << 2,
  offset_from_here = 1 << 3,
  deep_copy = 1 << 8,
  hidden = 1 << 9,
  event_message = 1 << 10,
};

// How an entry is an array (bits 4 to 6 of its flags), and which end of an event its time stamp is (bits 12 to 14).
enum class ArrayKind : std::uint32_t { none, fixed, zero_terminated, length_entry, length_payload };
constexpr ArrayKind array_kind(std::uint32_t flags) { return static_cast<ArrayKind>(flags >> 4 & 7); }

enum EntryType : std::uint32_t {
  type_char = 1,
  type_uchar,
  type_short,
  type_ushort,
  type_int,
  type_uint,
  type_long,
  type_ulong,
  type_longlong,
  type_ulonglong,
  type_int8,
  type_uint8,
  type_int16,
  type_uint16,
  type_int32,
  type_uint32,
  type_int64,
  type_uint64,
  type_float,
  type_double,
  type_longdouble,
  type_size,
  type_address,
  type_wchar,
  type_char8,
  type_char16,
  type_char32,
  type_byte = 32,
  type_int128,
  type_uint128,
  type_float16 = 42,
  type_float32,
  type_float64,
  type_float128,
  type_bf16 = 50,
  type_tf32 = 52,
  type_category = 68,
  type_color,
  type_scope,
  type_pid32,
  type_pid64,
  type_tid32,
  type_tid64,
  type_cstring,
  type_utf8,
  type_utf16,
  type_utf32,
  type_registered_string = 80,
  type_range_id = 81,
  type_referenced = 1022,
  type_raw = 1023,
};

enum class SchemaType : std::uint32_t { fixed = 1, dynamic, union_outside_selector, union_inside_selector };

constexpr bool is_string(std::uint32_t type) { return type >= type_cstring && type <= type_utf32; }

// Bytes of one value of a predefined type, of strings those of one character; 0: a type without a size.
constexpr std::uint32_t value_bytes(std::uint32_t type) {
  switch (type) {
    case type_char:
    case type_uchar:
    case type_int8:
    case type_uint8:
    case type_char8:
    case type_byte:
    case type_cstring:
    case type_utf8:
      return 1;
    case type_short:
    case type_ushort:
    case type_int16:
    case type_uint16:
    case type_char16:
    case type_float16:
    case type_bf16:
    case type_utf16:
      return 2;
    case type_int:
    case type_uint:
    case type_int32:
    case type_uint32:
    case type_float:
    case type_float32:
    case type_tf32:
    case type_wchar:
    case type_char32:
    case type_utf32:
    case type_category:
    case type_color:
    case type_pid32:
    case type_tid32:
      return 4;
    case type_long:
    case type_ulong:
    case type_longlong:
    case type_ulonglong:
    case type_int64:
    case type_uint64:
    case type_double:
    case type_float64:
    case type_size:
    case type_address:
    case type_scope:
    case type_pid64:
    case type_tid64:
    case type_registered_string:
    case type_range_id:
      return 8;
    case type_longdouble:
    case type_int128:
    case type_uint128:
    case type_float128:
      return 16;
    default:
      return 0;
  }
}

// True if the payload has an address and the entry's value is elsewhere: for pointers, and for strings whose entry does
// not give the length of an embedded string.
constexpr bool is_address(std::uint32_t type, std::uint32_t flags, std::uint64_t array_length) {
  return (flags & pointer) != 0 || (is_string(type) && array_kind(flags) == ArrayKind::none && array_length == 0);
}

// The begin of an entry: its offset, or, if that is 0, the next multiple of its alignment.
constexpr std::uint64_t begin_of(std::uint64_t offset, std::uint64_t next, std::uint32_t align, std::uint32_t packing) {
  if (offset != 0) return offset;
  if (packing != 0) align = std::min(align, packing);
  return align > 1 ? (next + align - 1) / align * align : next;
}

}  // namespace paceline::format::payload
