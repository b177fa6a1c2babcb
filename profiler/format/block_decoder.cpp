// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/block_decoder.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "profiler/format/columns.h"
#include "profiler/format/hash.h"

namespace paceline::format {
namespace {

// One LEB128 number off the front of [at, end); false if it is cut or longer than 64 bits.
inline bool take_number(const std::uint8_t*& at, const std::uint8_t* end, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && at != end; shift += 7) {
    const std::uint64_t byte = *at++;
    if (shift == 63 && byte > 1) return false;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

using Bytes = std::span<const std::uint8_t>;

std::size_t count_continued(Bytes bytes) {
  std::size_t count = 0;
  for (const std::uint8_t byte : bytes) count += byte >> 7;
  return count;
}

// True if a column of 2 × `count` bytes has `count` numbers of two bytes each, as many numbers of functions do.
bool all_of_two_bytes(const std::uint8_t* column, std::size_t count) {
  unsigned first_tops = 0x80, second_tops = 0;
  for (std::size_t i = 0; i < count; ++i) {
    first_tops &= column[2 * i];
    second_tops |= column[2 * i + 1];
  }
  return (first_tops & 0x80) != 0 && (second_tops & 0x80) == 0;
}

// Calls visit(i, number) for each of the `count` numbers of a column. Returns nullptr or what is wrong.
template <typename Visit>
const char* each_number(Bytes column, std::size_t count, Visit&& visit) {
  const std::uint8_t *at = column.data(), *const end = at + column.size();
  if (column.size() == count && count_continued(column) == 0) {
    for (std::size_t i = 0; i < count; ++i) visit(i, std::uint64_t{at[i]});
    return nullptr;
  }
  if (column.size() == 2 * count && all_of_two_bytes(at, count)) {
    for (std::size_t i = 0; i < count; ++i) visit(i, (at[2 * i] & 0x7fU) | std::uint64_t{at[2 * i + 1]} << 7);
    return nullptr;
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t number;
    if (!take_number(at, end, number)) return "a column is cut";
    visit(i, number);
  }
  return at == end ? nullptr : "a column is too long";
}

// Adds a field to the words of all events of a type. `key` gives the first word of the event i.
template <typename Key>
const char* add_field(Bytes column, const Field& field, std::span<std::uint64_t> words, Key&& key) {
  if (column.empty()) return nullptr;  // zeros only
  const std::uint64_t mask = field_mask(field);
  std::uint64_t any = 0;
  const char* wrong = nullptr;
  if (field.coding == Coding::plain) {
    wrong = each_number(column, words.size(), [&](std::size_t i, std::uint64_t number) {
      any |= number;
      words[i] |= number << field.shift;
    });
  } else if (field.coding == Coding::delta) {
    std::uint64_t value = 0;
    wrong = each_number(column, words.size(), [&](std::size_t i, std::uint64_t number) {
      value += undo_zigzag(number);
      any |= value;
      words[i] |= value << field.shift;
    });
  } else {
    std::array<std::uint64_t, series_keys> values{};
    wrong = each_number(column, words.size(), [&](std::size_t i, std::uint64_t number) {
      std::uint64_t& value = values[key(i) % series_keys];
      value += undo_zigzag(number);
      any |= value;
      words[i] |= value << field.shift;
    });
  }
  if (wrong != nullptr) return wrong;
  return (any & ~mask) != 0 ? "a value is out of range" : nullptr;
}

// Takes columns off the front of the decompressed bytes.
class ColumnReader {
 public:
  explicit ColumnReader(Bytes raw) : rest_(raw) {}

  bool next(Bytes& column) {
    std::uint32_t length = 0;
    if (rest_.size() < sizeof length) return false;
    std::memcpy(&length, rest_.data(), sizeof length);
    rest_ = rest_.subspan(sizeof length);
    if (length > rest_.size()) return false;
    column = rest_.first(length);
    rest_ = rest_.subspan(length);
    return true;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  Bytes rest_;
};

}  // namespace

std::size_t read_block_header(std::span<const std::byte> bytes, BlockHeader& header) {
  header = {};
  if (bytes.size() < short_block_header_bytes) return 0;
  constexpr std::size_t common = offsetof(BlockHeader, first_ticks);
  std::memcpy(&header, bytes.data(), common);
  if (header.kind != block_kind_summary) {  // check_block refuses unknown kinds
    std::memcpy(&header.hash, bytes.data() + common, sizeof header.hash);
    return short_block_header_bytes;
  }
  if (bytes.size() < sizeof header) return 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  return sizeof header;
}

const char* check_block(const BlockHeader& header, std::span<const std::byte> payload) {
  if (header.slots > slots_per_chunk || header.raw_bytes > max_raw_bytes || header.payload_bytes != payload.size()) {
    return "a size is out of range";
  }
  if (header.kind != block_kind_plain && header.kind != block_kind_summary) return "its kind is not known";
  if (header.hash != block_hash(header, payload.data())) return "the checksum does not fit";
  return nullptr;
}

struct BlockDecoder::Scratch {
  struct FreeContext {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, FreeContext> context{ZSTD_createDCtx()};
  // Some bytes behind the columns may be read, and mean nothing.
  static constexpr std::size_t slack = 16;
  std::array<std::uint8_t, max_raw_bytes + slack> raw;
  std::array<std::uint16_t, slots_per_chunk + 1> heads, picked;  // indices of slots: of all events, and of one type
  std::array<std::uint64_t, slots_per_chunk> words;              // one word of each event of a type
  std::array<std::uint32_t, slots_per_chunk> lengths;            // of the bytes of each event that has some, by type

  const char* decode(Bytes columns, std::span<Slot> into);

 private:
  const char* read_types(ColumnReader& columns, std::size_t slots);
  const char* read_lengths(ColumnReader columns);
  const char* place_heads(std::size_t slots);
  const char* read_ticks(ColumnReader& columns, Slot* into);
  const char* read_fields(ColumnReader& columns, const EventInfo& info, Slot* into);
  const char* read_bytes(ColumnReader& columns, std::span<const std::uint16_t> events, Slot* into);

  Bytes types_;
  std::array<std::uint32_t, 256> of_type_;
  bool has_bytes_ = false;
  std::size_t fixed_slots_ = 0;  // of the events that do not have bytes
};

BlockDecoder::BlockDecoder() : scratch_(std::make_unique_for_overwrite<Scratch>()) {
  if (!scratch_->context) throw std::bad_alloc();
}
BlockDecoder::~BlockDecoder() = default;

const char* BlockDecoder::decode(const BlockHeader& header, std::span<const std::byte> payload, std::span<Slot> into) {
  if (const char* wrong = check_block(header, payload)) return wrong;
  auto& raw = scratch_->raw;
  if (ZSTD_decompressDCtx(scratch_->context.get(), raw.data(), header.raw_bytes, payload.data(), payload.size()) !=
      header.raw_bytes) {
    return "it does not decompress";
  }
  return scratch_->decode(Bytes(raw).first(header.raw_bytes), into.first(header.slots));
}

const char* BlockDecoder::Scratch::decode(Bytes raw_columns, std::span<Slot> into) {
  ColumnReader columns(raw_columns);
  if (const char* wrong = read_types(columns, into.size())) return wrong;
  ColumnReader fields = columns;
  Bytes plane;
  for (int i = 0; i < 8; ++i) {
    if (!fields.next(plane)) return "a column of ticks is wrong";
  }
  if (has_bytes_) {
    if (const char* wrong = read_lengths(fields)) return wrong;
  }
  if (const char* wrong = place_heads(into.size())) return wrong;
  if (const char* wrong = read_ticks(columns, into.data())) return wrong;
  for (const EventInfo& info : event_table) {
    if (of_type_[static_cast<unsigned>(info.type)] == 0) continue;
    if (const char* wrong = read_fields(fields, info, into.data())) return wrong;
  }
  return fields.at_end() ? nullptr : "there are bytes after the last column";
}

const char* BlockDecoder::Scratch::read_types(ColumnReader& columns, std::size_t slots) {
  if (!columns.next(types_) || types_.size() > slots) return "the column of types is wrong";
  // Equal types often follow one another or take turns: with several tables no count waits for the one before.
  std::array<std::array<std::uint32_t, 256>, 4> counts{};
  for (std::size_t i = 0; i < types_.size(); ++i) ++counts[i % 4][types_[i]];
  has_bytes_ = false;
  fixed_slots_ = 0;
  std::size_t known = 0;
  of_type_ = {};
  for (const EventInfo& info : event_table) {
    const auto type = static_cast<unsigned>(info.type);
    of_type_[type] = counts[0][type] + counts[1][type] + counts[2][type] + counts[3][type];
    known += of_type_[type];
    if (!has_bytes(info.type)) {
      fixed_slots_ += of_type_[type] * (std::size_t{1} + info.extension_slots);
    } else if (of_type_[type] > 0) {
      has_bytes_ = true;
    }
  }
  return known == types_.size() ? nullptr : "an event type is not known";
}

// Where the events are depends on how many bytes some of them have: these columns are read first.
const char* BlockDecoder::Scratch::read_lengths(ColumnReader columns) {
  std::size_t events = 0;
  for (const EventInfo& info : event_table) {
    const std::uint32_t of_type = of_type_[static_cast<unsigned>(info.type)];
    if (of_type == 0) continue;
    Bytes column;
    for (const Field& field : info.columns) {
      if (!columns.next(column)) return "a column is missing";
      if (!has_bytes(info.type) || field.shift != 32) continue;
      const std::span<std::uint64_t> values = std::span(words).first(of_type);
      std::ranges::fill(values, 0);
      if (const char* wrong = add_field(column, {0, 0, 32}, values, [](std::size_t) { return 0; })) return wrong;
      for (const std::uint64_t value : values) lengths[events++] = static_cast<std::uint32_t>(value);
    }
    if (has_bytes(info.type) && !columns.next(column)) return "a column is missing";
  }
  return nullptr;
}

const char* BlockDecoder::Scratch::place_heads(std::size_t slots) {
  constexpr const char* wrong = "its number of slots is wrong";
  std::size_t at = 0;
  if (!has_bytes_) {
    if (fixed_slots_ != slots) return wrong;
    if (slots == types_.size()) {  // heads only
      for (std::size_t i = 0; i < slots; ++i) heads[i] = static_cast<std::uint16_t>(i);
      return nullptr;
    }
    for (std::size_t i = 0; i < types_.size(); ++i) {
      heads[i] = static_cast<std::uint16_t>(at);
      at += std::size_t{1} + extension_counts[types_[i]];
    }
    return nullptr;
  }
  // The next length of each type with bytes, in the order of the table.
  std::array<std::size_t, 256> next_length{};
  std::size_t first = 0;
  for (const EventInfo& info : event_table) {
    if (!has_bytes(info.type)) continue;
    next_length[static_cast<unsigned>(info.type)] = first;
    first += of_type_[static_cast<unsigned>(info.type)];
  }
  for (std::size_t i = 0; i < types_.size() && at <= slots; ++i) {
    heads[i] = static_cast<std::uint16_t>(at);
    const std::uint8_t count = extension_counts[types_[i]];
    at += 1 + (count != in_bytes ? count : (std::size_t{lengths[next_length[types_[i]]++]} + 15) / 16);
  }
  return at == slots ? nullptr : wrong;
}

// Each plane holds one more byte of those numbers that continue in the plane before it.
const char* BlockDecoder::Scratch::read_ticks(ColumnReader& columns, Slot* into) {
  std::array<const std::uint8_t*, 8> plane;
  std::size_t expected = types_.size();
  for (const std::uint8_t*& bytes : plane) {
    Bytes column;
    if (!columns.next(column) || column.size() != expected) return "a column of ticks is wrong";
    expected = count_continued(column);
    bytes = column.data();
  }
  if (expected != 0) return "a column of ticks is wrong";
  std::uint64_t now = 0;
  const std::uint8_t *second = plane[1], *third = plane[2];
  for (std::size_t i = 0; i < types_.size(); ++i) {
    // Three planes without a branch, which nobody could predict; a byte that does not belong to this number counts as
    // 0.
    std::uint64_t byte = plane[0][i], continued = byte >> 7, difference = byte & 0x7f;
    byte = *second;
    difference |= (byte & 0x7f & (0 - continued)) << 7;
    second += continued;
    continued &= byte >> 7;
    byte = *third;
    difference |= (byte & 0x7f & (0 - continued)) << 14;
    third += continued;
    continued &= byte >> 7;
    for (unsigned number = 3; continued != 0; ++number) {
      byte = *plane[number]++;
      difference |= (byte & 0x7f) << (7 * number);
      continued = byte >> 7;
    }
    now += difference;
    into[heads[i]].high = now << 8 | types_[i];
  }
  return nullptr;
}

const char* BlockDecoder::Scratch::read_fields(ColumnReader& columns, const EventInfo& info, Slot* into) {
  const std::span<const std::uint16_t> events(
      picked.data(), pick_type(types_.data(), heads.data(), types_.size(), info.type, picked.data()));
  const std::span<std::uint64_t> values = std::span(words).first(events.size());
  const auto low = [&](std::size_t i) { return into[events[i]].low; };
  const unsigned last_word = has_bytes(info.type) ? 0 : 2U * info.extension_slots;
  auto field = info.columns.begin();
  for (unsigned word = 0; word <= last_word; ++word) {
    std::ranges::fill(values, 0);
    for (; field != info.columns.end() && field->word == word; ++field) {
      Bytes column;
      if (!columns.next(column)) return "a column is missing";
      if (const char* wrong = add_field(column, *field, values, low)) return wrong;
    }
    Slot* const slots = into + (word + 1) / 2;
    std::uint64_t Slot::*const half = word % 2 == 0 ? &Slot::low : &Slot::high;
    for (std::size_t i = 0; i < events.size(); ++i) slots[events[i]].*half = values[i];
  }
  return has_bytes(info.type) ? read_bytes(columns, events, into) : nullptr;
}

const char* BlockDecoder::Scratch::read_bytes(ColumnReader& columns, std::span<const std::uint16_t> events,
                                              Slot* into) {
  Bytes column;
  if (!columns.next(column)) return "a column is missing";
  for (const std::uint16_t event : events) {
    const std::size_t length = into[event].low >> 32;
    if (length > column.size()) return "a column of bytes is cut";
    std::fill_n(into + event + 1, extension_slots(into[event]), Slot{});
    if (length > 0) std::memcpy(into + event + 1, column.data(), length);
    column = column.subspan(length);
  }
  return column.empty() ? nullptr : "a column of bytes is too long";
}

const char* BlockDecoder::decode(const BlockHeader& header, std::span<const std::byte> payload,
                                 std::vector<Slot>& slots) {
  if (const char* wrong = check_block(header, payload)) return wrong;  // before its number of slots is believed
  const std::size_t before = slots.size();
  slots.resize(before + header.slots);
  const char* wrong = decode(header, payload, std::span(slots).subspan(before));
  if (wrong != nullptr) slots.resize(before);
  return wrong;
}

const char* BlockDecoder::decode_types(const BlockHeader& header, std::span<const std::byte> payload,
                                       std::vector<EventType>& types) {
  if (const char* wrong = check_block(header, payload)) return wrong;
  ZSTD_DCtx* const context = scratch_->context.get();
  ZSTD_DCtx_reset(context, ZSTD_reset_session_only);
  ZSTD_inBuffer in{payload.data(), payload.size(), 0};
  const auto take = [&](void* out, std::size_t bytes) {
    ZSTD_outBuffer to{out, bytes, 0};
    while (to.pos < to.size) {
      const std::size_t before = in.pos + to.pos;
      if (ZSTD_isError(ZSTD_decompressStream(context, &to, &in)) != 0 || in.pos + to.pos == before) return false;
    }
    return true;
  };
  std::uint32_t events = 0;
  if (!take(&events, sizeof events)) return "it does not decompress";
  if (events > header.slots) return "the column of types is wrong";
  const std::size_t before = types.size();
  types.resize(before + events);
  if (take(types.data() + before, events)) return nullptr;
  types.resize(before);
  return "it does not decompress";
}

}  // namespace paceline::format
