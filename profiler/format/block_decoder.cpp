#include "profiler/format/block_decoder.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "profiler/format/event_table.h"
#include "profiler/format/hash.h"

namespace paceline::format {
namespace {

constexpr std::uint64_t ticks_mask = (std::uint64_t{1} << 56) - 1;

// Takes columns off the front of the decompressed bytes.
class ColumnReader {
 public:
  explicit ColumnReader(std::span<const std::byte> raw) : rest_(raw) {}

  bool next(std::span<const std::byte>& column) {
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
  std::span<const std::byte> rest_;
};

// One LEB128 number off the front of a column; false if it is cut or longer than 64 bits.
bool take_number(std::span<const std::byte>& column, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !column.empty(); shift += 7) {
    const auto byte = static_cast<std::uint64_t>(column.front());
    column = column.subspan(1);
    if (shift == 63 && byte > 1) return false;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

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
  std::vector<std::byte> raw;
  std::vector<std::uint64_t> ticks;
  std::vector<std::array<std::uint64_t, event_words>> words;   // of each event, in order
  std::vector<std::span<const std::byte>> bytes;               // of each event, in order; most have none
  std::array<std::vector<std::uint32_t>, 256> events_of_type;  // indices
};

BlockDecoder::BlockDecoder() : scratch_(std::make_unique<Scratch>()) {
  if (!scratch_->context) throw std::bad_alloc();
}
BlockDecoder::~BlockDecoder() = default;

const char* BlockDecoder::decode(const BlockHeader& header, std::span<const std::byte> payload, std::span<Slot> into) {
  if (const char* wrong = check_block(header, payload)) return wrong;
  auto& [context, raw, ticks, words, bytes, events_of_type] = *scratch_;
  raw.resize(header.raw_bytes);
  if (ZSTD_decompressDCtx(context.get(), raw.data(), raw.size(), payload.data(), payload.size()) != raw.size()) {
    return "it does not decompress";
  }

  ColumnReader columns(raw);
  std::span<const std::byte> types;
  if (!columns.next(types) || types.size() > header.slots) return "the column of types is wrong";
  for (auto& events : events_of_type) events.clear();
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (fields_of(static_cast<EventType>(types[i])).empty()) return "an event type is not known";
    events_of_type[static_cast<unsigned>(types[i])].push_back(static_cast<std::uint32_t>(i));
  }

  // Planes of ticks: each holds one more byte of those numbers that said so in the plane before.
  ticks.assign(types.size(), 0);
  std::vector<std::uint32_t> longer(types.size());
  for (std::uint32_t i = 0; i < longer.size(); ++i) longer[i] = i;
  for (unsigned plane = 0; plane < 8; ++plane) {
    std::span<const std::byte> column;
    if (!columns.next(column) || column.size() != longer.size()) return "a column of ticks is wrong";
    std::size_t kept = 0;
    for (std::size_t i = 0; i < column.size(); ++i) {
      const std::uint32_t event = longer[i];
      const auto byte = static_cast<std::uint64_t>(column[i]);
      ticks[event] |= (byte & 0x7f) << (7 * plane);
      if (byte >= 0x80) longer[kept++] = event;
    }
    longer.resize(kept);
  }
  if (!longer.empty()) return "a column of ticks is wrong";

  words.assign(types.size(), {});
  bytes.assign(types.size(), {});
  for (unsigned type = 0; type < 256; ++type) {
    const auto& events = events_of_type[type];
    if (events.empty()) continue;
    for (const Field& field : fields_of(static_cast<EventType>(type))) {
      std::span<const std::byte> column;
      if (!columns.next(column)) return "a column is missing";
      const bool all_zero = column.empty();
      const std::uint64_t mask = field_mask(field);
      std::array<std::uint64_t, series_keys> before{};
      for (const std::uint32_t event : events) {
        std::uint64_t coded = 0;
        if (!all_zero && !take_number(column, coded)) return "a column is cut";
        std::uint64_t& last = before[field.coding == Coding::series ? words[event][0] % series_keys : 0];
        const std::uint64_t value = field.coding == Coding::plain ? coded : last + undo_zigzag(coded);
        if (value > mask) return "a value is out of range";
        words[event][field.word] |= value << field.shift;
        last = value;
      }
      if (!column.empty()) return "a column is too long";
    }
    if (!has_bytes(static_cast<EventType>(type))) continue;
    std::span<const std::byte> column;
    if (!columns.next(column)) return "a column is missing";
    for (const std::uint32_t event : events) {
      const std::uint64_t length = words[event][0] >> 32;
      if (length > column.size()) return "a column of bytes is cut";
      bytes[event] = column.first(length);
      column = column.subspan(length);
    }
    if (!column.empty()) return "a column of bytes is too long";
  }
  if (!columns.at_end()) return "there are bytes after the last column";

  std::size_t at = 0;
  std::uint64_t now = 0;
  for (std::size_t i = 0; i < types.size(); ++i) {
    now = (now + ticks[i]) & ticks_mask;
    const auto type = static_cast<EventType>(types[i]);
    const Slot head{pack_high(now, type), words[i][0]};
    const std::size_t next = at + 1 + extension_slots(head);
    if (next > header.slots) return "its number of slots is wrong";
    into[at] = head;
    if (has_bytes(type)) {
      std::fill(into.begin() + static_cast<std::ptrdiff_t>(at) + 1, into.begin() + static_cast<std::ptrdiff_t>(next),
                Slot{});
      if (!bytes[i].empty()) std::memcpy(&into[at + 1], bytes[i].data(), bytes[i].size());
    } else {
      for (std::size_t word = 1; at + (word + 1) / 2 < next; word += 2) {
        into[at + (word + 1) / 2] = {words[i][word], words[i][word + 1]};
      }
    }
    at = next;
  }
  return at == header.slots ? nullptr : "its number of slots is wrong";
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
