// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/block.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "profiler/format/block_summary.h"
#include "profiler/format/columns.h"
#include "profiler/format/hash.h"

namespace paceline::format {
namespace {

// Columns are repetitions or noise: a search for matches of at least 7 bytes finds the first and soon leaves the second
// alone. The table of 2^12 entries stays in the first-level cache. As small as zstd's level 3, and a sixth faster.
constexpr int compression_level = 1, shortest_match = 7, match_table_log = 12;

// Columns of at least this size get a zstd block, and therefore a Huffman table, of their own.
constexpr std::size_t own_table_bytes = 512;

// Appends columns, each after its length in 4 bytes, and keeps where large ones begin and end. The buffer is large
// enough for any chunk: a slot of 16 bytes gives at most 1 (type) + 8 (ticks) + 11 (low: fields of 16, 16 and 32 bits)
// or 2 × 11 bytes of columns.
class ColumnWriter {
 public:
  explicit ColumnWriter(std::byte* out) : begin_(out), length_at_(out) {}

  // The place of the next column's first byte. The column is written there and closed with its end.
  std::byte* open() const { return length_at_ + 4; }
  void close(std::byte* end) {
    const auto length = static_cast<std::uint32_t>(end - open());
    memcpy(length_at_, &length, 4);
    if (length >= own_table_bytes && cuts_ + 2 <= max_cuts) {
      cut_at_[cuts_++] = static_cast<std::uint32_t>(length_at_ - begin_);
      cut_at_[cuts_++] = static_cast<std::uint32_t>(end - begin_);
    }
    length_at_ = end;
  }
  std::size_t size() const { return static_cast<std::size_t>(length_at_ - begin_); }
  std::span<const std::uint32_t> cuts() const { return {cut_at_, cuts_}; }

 private:
  static constexpr std::size_t max_cuts = 128;
  std::byte* begin_;
  std::byte* length_at_;
  std::uint32_t cut_at_[max_cuts];
  std::size_t cuts_ = 0;
};

// LEB128: 7 bits a byte, lowest first, the top bit set in all but the last. Returns the end.
inline std::byte* put_number(std::byte* out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *out++ = static_cast<std::byte>((value & 0x7f) | 0x80);
  *out++ = static_cast<std::byte>(value);
  return out;
}

// One word of all events of a type, and what its values have in common.
struct Words {
  const std::uint64_t* values;
  std::size_t count;
  std::uint64_t any = 0;     // bits that are set in some value
  std::uint64_t varies = 0;  // bits that are not the same in all values

  bool is_zero(const Field& field) const { return (any >> field.shift & field_mask(field)) == 0; }
  bool is_constant(const Field& field) const { return (varies >> field.shift & field_mask(field)) == 0; }
};

Words gather(const Slot* slots, std::span<const std::uint16_t> heads, unsigned word, std::uint64_t* into) {
  const auto* first = reinterpret_cast<const std::uint64_t*>(slots) + (word == 0 ? 1 : word + 1);
  Words words{into, heads.size()};
  const std::uint64_t one = first[std::size_t{2} * heads[0]];
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const std::uint64_t value = first[std::size_t{2} * heads[i]];
    into[i] = value;
    words.any |= value;
    words.varies |= value ^ one;
  }
  return words;
}

std::byte* put_plain(std::byte* out, const Words& words, const Field& field) {
  const std::uint64_t mask = field_mask(field);
  const auto value = [&](std::size_t i) { return words.values[i] >> field.shift & mask; };
  if ((words.any >> field.shift & mask) < 0x80) {
    for (std::size_t i = 0; i < words.count; ++i) out[i] = static_cast<std::byte>(value(i));
    return out + words.count;
  }
  if (!words.is_constant(field)) {
    for (std::size_t i = 0; i < words.count; ++i) out = put_number(out, value(i));
    return out;
  }
  std::byte number[16];
  const std::size_t bytes = static_cast<std::size_t>(put_number(number, value(0)) - number);
  for (std::size_t i = 0; i < words.count; ++i, out += bytes) memcpy(out, number, sizeof number);
  return out;
}

std::byte* put_differences(std::byte* out, const Words& words, const Field& field) {
  const std::uint64_t mask = field_mask(field);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < words.count; ++i) {
    const std::uint64_t value = words.values[i] >> field.shift & mask;
    out = put_number(out, zigzag(value - before));
    before = value;
  }
  return out;
}

std::byte* put_series(std::byte* out, const Words& words, const Slot* slots, std::span<const std::uint16_t> heads) {
  std::uint64_t before[series_keys] = {};
  for (std::size_t i = 0; i < words.count; ++i) {
    std::uint64_t& last = before[slots[heads[i]].low % series_keys];
    out = put_number(out, zigzag(words.values[i] - last));
    last = words.values[i];
  }
  return out;
}

// The columns of one type. `scratch` has room for a word of each event.
void put_fields(ColumnWriter& columns, const EventInfo& info, const Slot* slots, std::span<const std::uint16_t> heads,
                std::uint64_t* scratch) {
  Words words{};
  unsigned gathered = event_words;
  for (const Field& field : info.columns) {
    if (field.word != gathered) words = gather(slots, heads, field.word, scratch);
    gathered = field.word;
    std::byte* out = columns.open();
    if (words.is_zero(field)) {  // a column of zeros is empty
    } else if (field.coding == Coding::plain) {
      out = put_plain(out, words, field);
    } else if (field.coding == Coding::delta) {
      out = put_differences(out, words, field);
    } else {
      out = put_series(out, words, slots, heads);
    }
    columns.close(out);
  }
  if (!has_bytes(info.type)) return;
  std::byte* out = columns.open();
  for (const std::uint16_t head : heads) {
    const std::size_t bytes = slots[head].low >> 32;
    memcpy(out, slots + head + 1, bytes);
    out += bytes;
  }
  columns.close(out);
}

// One zstd frame out of several flushed pieces.
class Frame {
 public:
  Frame(ZSTD_CCtx* context, const std::byte* raw, std::size_t raw_size, std::byte* out, std::size_t capacity)
      : context_(context), in_{raw, 0, 0}, out_{out, capacity, 0}, raw_size_(raw_size) {
    failed_ = ZSTD_isError(ZSTD_CCtx_reset(context, ZSTD_reset_session_only)) != 0 ||
              ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(context, raw_size)) != 0;
  }
  void flush_up_to(std::size_t end) {
    in_.size = end;
    if (in_.pos < in_.size) step(end == raw_size_ ? ZSTD_e_end : ZSTD_e_flush);
  }
  // Returns the length of the frame in bytes, or 0 if zstd failed.
  std::size_t finish() {
    flush_up_to(raw_size_);
    return failed_ ? 0 : out_.pos;
  }

 private:
  void step(ZSTD_EndDirective directive) {
    if (failed_) return;
    const std::size_t left = ZSTD_compressStream2(context_, &out_, &in_, directive);
    failed_ = left != 0;  // an error, or no room, which the buffer's size rules out
  }

  ZSTD_CCtx* context_;
  ZSTD_inBuffer in_;
  ZSTD_outBuffer out_;
  std::size_t raw_size_;
  bool failed_ = false;
};

constexpr std::size_t block_capacity = sizeof(BlockHeader) + max_payload_bytes;
constexpr std::size_t raw_capacity = max_raw_bytes;
static_assert(block_capacity % alignof(std::uint64_t) == 0);
static_assert(slots_per_chunk * (1 + 8 + 22) + most_columns() * 4 <= raw_capacity);

// As next_head(). It is beyond any count where the event is not whole: it was never written (high = 0), or its type is
// unknown.
inline std::size_t next_event(const Slot* slots, std::size_t at) {
  return is_known(type_of(slots[at])) ? next_head(slots, at) : ~std::size_t{0};
}

}  // namespace

std::size_t whole_slots(const Slot* slots, std::size_t count) noexcept {
  std::size_t at = 0;
  while (at < count) {
    const std::size_t next = next_event(slots, at);
    if (next > count) break;
    at = next;
  }
  return at;
}

// One allocation for all scratch; zstd's own buffers are made by compressing once.
BlockEncoder::BlockEncoder() noexcept {
  compressor_ = ZSTD_createCCtx();
  constexpr std::size_t numbers = slots_per_chunk * sizeof(std::uint64_t), indices = (slots_per_chunk + 1) * 2;
  raw_ = static_cast<std::byte*>(calloc(1, raw_capacity + block_capacity + numbers + 2 * indices));
  if (compressor_ == nullptr || raw_ == nullptr) {
    free(raw_);
    raw_ = nullptr;
    return;
  }
  block_ = raw_ + raw_capacity;
  numbers_ = reinterpret_cast<std::uint64_t*>(block_ + block_capacity);
  heads_ = reinterpret_cast<std::uint16_t*>(numbers_ + slots_per_chunk);
  picked_ = heads_ + slots_per_chunk + 1;
  auto* const context = static_cast<ZSTD_CCtx*>(compressor_);
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, compression_level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_minMatch, shortest_match);
  ZSTD_CCtx_setParameter(context, ZSTD_c_hashLog, match_table_log);
  Frame(context, raw_, raw_capacity, block_, block_capacity).finish();
}

BlockEncoder::~BlockEncoder() {
  ZSTD_freeCCtx(static_cast<ZSTD_CCtx*>(compressor_));
  free(raw_);
}

std::span<const std::byte> BlockEncoder::encode(const ChunkHeader& chunk, const Slot* slots,
                                                std::size_t count) noexcept {
  if (raw_ == nullptr || count > slots_per_chunk) return {};
  ColumnWriter columns(raw_);
  BlockSummary summary;

  // One walk over the events: their types, the differences of their ticks, where their heads are, and the summary.
  auto* const types = reinterpret_cast<std::uint8_t*>(columns.open());
  std::size_t events = 0, at = 0;
  std::uint64_t ticks = 0;
  while (at < count) {
    const std::size_t next = next_event(slots, at);
    if (next > count) break;
    const std::uint64_t high = slots[at].high;
    types[events] = static_cast<std::uint8_t>(high);
    heads_[events] = static_cast<std::uint16_t>(at);
    numbers_[events] = ((high >> 8) - ticks) & ticks_mask;
    ticks = high >> 8;
    summary.add(static_cast<unsigned>(high & 0xff), ticks);
    ++events;
    at = next;
  }
  if (events == 0) return {};
  columns.close(columns.open() + events);

  // Ticks as planes: first bytes of all numbers, then the second bytes of those that have one, and so on, because first
  // bytes are noise and the others are not. Without branches, which nobody could predict.
  std::size_t left = events;
  for (int plane = 0; plane < 8; ++plane) {
    std::byte* const out = columns.open();
    std::size_t longer = 0;
    for (std::size_t i = 0; i < left; ++i) {
      const std::uint64_t rest = numbers_[i] >> 7;
      const auto continues = static_cast<unsigned>(rest != 0);
      out[i] = static_cast<std::byte>((numbers_[i] & 0x7f) | continues << 7);
      numbers_[longer] = rest;
      longer += continues;
    }
    columns.close(out + left);
    left = longer;
  }

  for (const EventInfo& info : event_table) {
    const std::uint32_t of_type = summary.of_type[static_cast<unsigned>(info.type)];
    if (of_type == 0) continue;
    const std::span<const std::uint16_t> heads(picked_, pick_type(types, heads_, events, info.type, picked_));
    if (has_duration(info.type)) {
      for (const std::uint16_t head : heads) summary.add_duration(slots + head);
    }
    put_fields(columns, info, slots, heads, numbers_);
  }

  Frame frame(static_cast<ZSTD_CCtx*>(compressor_), raw_, columns.size(), block_ + sizeof(BlockHeader),
              max_payload_bytes);
  for (const std::uint32_t cut : columns.cuts()) frame.flush_up_to(cut);
  const std::size_t payload_bytes = frame.finish();
  if (payload_bytes == 0) return {};

  BlockHeader header{};
  memcpy(header.magic, block_magic, sizeof header.magic);
  header.kind = block_kind_summary;
  header.track = chunk.track;
  header.slots = static_cast<std::uint32_t>(at);
  header.sequence = chunk.sequence;
  header.thread_id = chunk.thread_id;
  header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  header.raw_bytes = static_cast<std::uint32_t>(columns.size());
  summary.store(header);
  header.hash = block_hash(header, block_ + sizeof header);
  memcpy(block_, &header, sizeof header);
  return {block_, sizeof header + payload_bytes};
}

}  // namespace paceline::format
