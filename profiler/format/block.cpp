#include "profiler/format/block.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "profiler/format/block_summary.h"
#include "profiler/format/event_table.h"
#include "profiler/format/hash.h"

namespace paceline::format {
namespace {

constexpr int compression_level = 3;
constexpr std::uint64_t ticks_mask = (std::uint64_t{1} << 56) - 1;

// Columns from this size on get a zstd block, and so a Huffman table, of their own.
constexpr std::size_t own_table_bytes = 512;

// Appends columns, each after its length in 4 bytes, and keeps where large ones begin and end. The buffer is large
// enough for any chunk: a slot of 16 bytes gives at most 1 (type) + 8 (ticks) + 11 (low: fields of 16, 16 and 32 bits)
// or 2 × 11 bytes of columns.
class ColumnWriter {
 public:
  explicit ColumnWriter(std::byte* out) : begin_(out), at_(out) {}

  void open() {
    length_at_ = at_;
    at_ += 4;
    any_ = 0;
  }
  void put_byte(unsigned value) { *at_++ = static_cast<std::byte>(value); }
  // LEB128: 7 bits a byte, lowest first, the top bit set in all but the last.
  void put_number(std::uint64_t value) {
    any_ |= value;
    for (; value >= 0x80; value >>= 7) put_byte(static_cast<unsigned>(value & 0x7f) | 0x80);
    put_byte(static_cast<unsigned>(value));
  }
  void put_bytes(const void* bytes, std::size_t size) {
    memcpy(at_, bytes, size);
    at_ += size;
  }
  // Of numbers that are all 0 nothing is kept.
  void close_numbers() {
    if (any_ == 0) at_ = length_at_ + 4;
    close();
  }
  void close() {
    const auto length = static_cast<std::uint32_t>(at_ - (length_at_ + 4));
    memcpy(length_at_, &length, 4);
    if (length >= own_table_bytes && cuts_ + 2 <= max_cuts) {
      cut_at_[cuts_++] = static_cast<std::uint32_t>(length_at_ - begin_);
      cut_at_[cuts_++] = static_cast<std::uint32_t>(at_ - begin_);
    }
  }
  std::size_t size() const { return static_cast<std::size_t>(at_ - begin_); }
  std::span<const std::uint32_t> cuts() const { return {cut_at_, cuts_}; }

 private:
  static constexpr std::size_t max_cuts = 128;
  std::byte* begin_;
  std::byte* at_;
  std::byte* length_at_ = nullptr;
  std::uint64_t any_ = 0;
  std::uint32_t cut_at_[max_cuts];
  std::size_t cuts_ = 0;
};

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
  // Length of the frame, 0 if zstd failed.
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

std::uint64_t word_of(const Slot* head, unsigned word) {
  if (word == 0) return head->low;
  const Slot& extension = head[(word + 1) / 2];
  return word % 2 == 1 ? extension.high : extension.low;
}

constexpr std::size_t block_capacity = sizeof(BlockHeader) + max_payload_bytes;
constexpr std::size_t raw_capacity = max_raw_bytes;
static_assert(block_capacity % alignof(std::uint64_t) == 0);
static_assert(slots_per_chunk * (1 + 8 + 22) + most_columns() * 4 <= raw_capacity);

}  // namespace

std::size_t whole_slots(const Slot* slots, std::size_t count) noexcept {
  std::size_t at = 0;
  while (at < count) {
    const Slot& head = slots[at];
    if (fields_of(type_of(head)).empty()) break;
    const std::size_t next = at + 1 + extension_slots(head);
    if (next > count) break;
    at = next;
  }
  return at;
}

// One allocation for all scratch; zstd's own buffers are made by compressing once.
BlockEncoder::BlockEncoder() noexcept {
  compressor_ = ZSTD_createCCtx();
  raw_ = static_cast<std::byte*>(
      calloc(1, raw_capacity + block_capacity + slots_per_chunk * (sizeof *differences_ + sizeof *heads_)));
  if (compressor_ == nullptr || raw_ == nullptr) {
    free(raw_);
    raw_ = nullptr;
    return;
  }
  block_ = raw_ + raw_capacity;
  differences_ = reinterpret_cast<std::uint64_t*>(block_ + block_capacity);
  heads_ = reinterpret_cast<std::uint32_t*>(differences_ + slots_per_chunk);
  auto* const context = static_cast<ZSTD_CCtx*>(compressor_);
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, compression_level);
  Frame(context, raw_, raw_capacity, block_, block_capacity).finish();
}

BlockEncoder::~BlockEncoder() {
  ZSTD_freeCCtx(static_cast<ZSTD_CCtx*>(compressor_));
  free(raw_);
}

std::span<const std::byte> BlockEncoder::encode(const ChunkHeader& chunk, const Slot* slots,
                                                std::size_t count) noexcept {
  if (raw_ == nullptr || count > slots_per_chunk) return {};
  count = whole_slots(slots, count);
  if (count == 0) return {};
  ColumnWriter columns(raw_);

  // Types in order, how many of each, and the differences of ticks.
  std::uint32_t of_type[256] = {};
  std::size_t events = 0;
  std::uint64_t ticks = 0;
  columns.open();
  for (std::size_t at = 0; at < count; at += 1 + extension_slots(slots[at])) {
    const auto type = static_cast<unsigned>(type_of(slots[at]));
    columns.put_byte(type);
    ++of_type[type];
    differences_[events++] = (ticks_of(slots[at]) - ticks) & ticks_mask;
    ticks = ticks_of(slots[at]);
  }
  columns.close();

  // Ticks as planes: first bytes of all numbers, then the second bytes of those that have one, and so on, because first
  // bytes are noise and the others are not.
  std::size_t left = events;
  for (int plane = 0; plane < 8; ++plane) {
    std::size_t longer = 0;
    columns.open();
    for (std::size_t i = 0; i < left; ++i) {
      const std::uint64_t rest = differences_[i] >> 7;
      columns.put_byte(static_cast<unsigned>(differences_[i] & 0x7f) | (rest != 0 ? 0x80U : 0U));
      if (rest != 0) differences_[longer++] = rest;
    }
    columns.close();
    left = longer;
  }

  // The heads sorted by type, in order within a type; then each type's fields.
  std::uint32_t end_of_type[256];
  std::uint32_t begin = 0;
  for (unsigned type = 0; type < 256; ++type) {
    end_of_type[type] = begin;
    begin += of_type[type];
  }
  for (std::size_t at = 0; at < count; at += 1 + extension_slots(slots[at])) {
    heads_[end_of_type[static_cast<unsigned>(type_of(slots[at]))]++] = static_cast<std::uint32_t>(at);
  }
  for (unsigned type = 0; type < 256; ++type) {
    if (of_type[type] == 0) continue;
    const std::span<const std::uint32_t> heads(heads_ + end_of_type[type] - of_type[type], of_type[type]);
    for (const Field& field : fields_of(static_cast<EventType>(type))) {
      const std::uint64_t mask = field_mask(field);
      std::uint64_t before[series_keys] = {};
      columns.open();
      for (const std::uint32_t head : heads) {
        const std::uint64_t value = word_of(slots + head, field.word) >> field.shift & mask;
        std::uint64_t& last = before[field.coding == Coding::series ? slots[head].low % series_keys : 0];
        columns.put_number(field.coding == Coding::plain ? value : zigzag(value - last));
        last = value;
      }
      columns.close_numbers();
    }
    if (!has_bytes(static_cast<EventType>(type))) continue;
    columns.open();
    for (const std::uint32_t head : heads) columns.put_bytes(slots + head + 1, slots[head].low >> 32);
    columns.close();
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
  header.slots = static_cast<std::uint32_t>(count);
  header.sequence = chunk.sequence;
  header.thread_id = chunk.thread_id;
  header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  header.raw_bytes = static_cast<std::uint32_t>(columns.size());
  summarize(slots, count, header);
  header.hash = block_hash(header, block_ + sizeof header);
  memcpy(block_, &header, sizeof header);
  return {block_, sizeof header + payload_bytes};
}

}  // namespace paceline::format
