// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/nvtx/payload.h"

#include <stdint.h>
#include <string.h>

#include <algorithm>

#include "profiler/inject/sources/nvtx/schemas.h"

namespace paceline::inject {
namespace {

using format::payload::array_kind;
using format::payload::ArrayKind;

struct Piece {
  EventType type;
  std::uint32_t key;  // the schema of a payload, or the pointer's offset of a part
  std::uint32_t bytes;
  const void* from;
};

std::uint32_t slots_for(std::uint32_t bytes) { return 1 + (bytes + 15) / 16; }

std::uint64_t unsigned_at(const void* from, std::size_t bytes) {
  std::uint64_t value = 0;
  if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) memcpy(&value, from, bytes);
  return value;
}

// Collects the pieces of one event's payloads that are written.
class Pieces {
 public:
  Pieces(const Payloads& payloads, std::uint16_t domain) : payloads_(payloads), domain_(domain) {
    for (std::size_t i = 0; !payloads.empty() && i < payloads.count; ++i) add(payloads.data[i]);
    if (cut_) count_dropped(format::DropCause::payload_cut);
  }
  std::span<const Piece> all() const { return {pieces_, count_}; }
  std::uint32_t slots() const { return slots_; }

 private:
  void add(const nvtxPayloadData_t& payload) {
    const std::uint32_t number = schema_number(payload.schemaId);
    // A referenced payload serves only pointers into it, which are followed at their own places.
    if (payload.payload == nullptr || number == format::payload::type_referenced) return;
    const bool wants_schema = payload.size == SIZE_MAX || (any_pointers() && number >= format::payload::first_schema);
    const KnownSchema* schema = wants_schema ? find_schema(domain_, number) : nullptr;
    std::size_t size = payload.size;
    if (size == SIZE_MAX) {
      if (format::payload::is_string(number)) {
        size = text_bytes(payload.payload, format::payload::value_bytes(number));
      } else {
        size = schema != nullptr ? schema->bytes : format::payload::value_bytes(number);
        cut_ = cut_ || size == 0;  // its length is unknown
      }
    }
    const std::uint32_t kept = put(EventType::payload, number, payload.payload, size);
    if (schema == nullptr) return;
    for (const PointerEntry& pointer : schema->pointers) {
      if (pointer.offset + sizeof(void*) <= kept) follow(pointer, payload.payload, kept);
    }
  }

  std::uint32_t put(EventType type, std::uint32_t key, const void* from, std::size_t size) {
    const std::size_t kept = std::min(size, left_);
    cut_ = cut_ || kept < size;
    if (kept == 0) return 0;
    if (count_ == most_payload_pieces) {
      cut_ = true;
      return 0;
    }
    const auto bytes = static_cast<std::uint32_t>(kept);
    pieces_[count_++] = {type, key, bytes, from};
    left_ -= kept;
    slots_ += slots_for(bytes);
    return bytes;
  }

  void follow(const PointerEntry& pointer, const void* base, std::uint32_t base_bytes) {
    const char* target = nullptr;
    memcpy(&target, static_cast<const char*>(base) + pointer.offset, sizeof target);
    if (target == nullptr) return;
    std::size_t limit = left_;
    if ((pointer.flags & format::payload::pointer) != 0 && (pointer.flags & format::payload::deep_copy) == 0) {
      limit = bytes_within_payloads(target);
      if (limit == 0) return;  // the program does not guarantee that the target is readable
    }
    std::size_t elements = 1;
    switch (array_kind(pointer.flags)) {
      case ArrayKind::fixed:
        elements = pointer.length;
        break;
      case ArrayKind::length_entry:
        if (pointer.length + pointer.length_bytes > base_bytes) return;
        elements = unsigned_at(static_cast<const char*>(base) + pointer.length, pointer.length_bytes);
        break;
      case ArrayKind::length_payload: {
        if (pointer.length >= payloads_.count) return;
        const nvtxPayloadData_t& length = payloads_.data[pointer.length];
        elements = length.payload != nullptr ? unsigned_at(length.payload, length.size) : 0;
        break;
      }
      case ArrayKind::none:
        if (!pointer.text) break;
        if (pointer.length > 0) {  // a string with that number of characters
          elements = pointer.length;
          break;
        }
        [[fallthrough]];
      case ArrayKind::zero_terminated:
        put(EventType::payload_part, pointer.offset, target, text_bytes(target, pointer.unit, std::min(limit, left_)));
        return;
    }
    // Data beyond the limit is cut, and an invalid length does not overflow.
    const std::size_t size = elements > longest_payload ? SIZE_MAX : elements * pointer.unit;
    const std::size_t readable = limit < left_ ? limit : SIZE_MAX;
    put(EventType::payload_part, pointer.offset, target, std::min(size, readable));
  }

  // The number of bytes of this event's payloads from `target` on.
  std::size_t bytes_within_payloads(const char* target) const {
    for (std::size_t i = 0; i < payloads_.count; ++i) {
      const auto* begin = static_cast<const char*>(payloads_.data[i].payload);
      const std::size_t size = payloads_.data[i].size;
      if (begin != nullptr && size != SIZE_MAX && target >= begin && target < begin + size) {
        return static_cast<std::size_t>(begin + size - target);
      }
    }
    return 0;
  }

  // The number of bytes before an element of zeros, or `limit` if there is none within it.
  std::size_t text_bytes(const void* from, std::uint32_t unit, std::size_t limit) {
    const auto* text = static_cast<const char*>(from);
    static constexpr char zeros[16] = {};
    if (unit == 0 || unit > sizeof zeros) return 0;
    std::size_t at = 0;
    if (unit == 1) {
      at = strnlen(text, limit);
    } else {
      while (at + unit <= limit && memcmp(text + at, zeros, unit) != 0) at += unit;
    }
    cut_ = cut_ || at + unit > left_;
    return at;
  }
  std::size_t text_bytes(const void* from, std::uint32_t unit) { return text_bytes(from, unit, left_); }

  const Payloads& payloads_;
  std::uint16_t domain_;
  bool cut_ = false;
  std::uint32_t slots_ = 0;
  std::size_t count_ = 0;
  std::size_t left_ = longest_payload;
  Piece pieces_[most_payload_pieces];
};

}  // namespace

bool emit_with_payloads(const Payloads& payloads, std::uint16_t domain, EventType type, std::uint64_t low,
                        std::span<const Slot> extension) {
  const bool ends = type == EventType::pop || type == EventType::end;
  const std::uint64_t begin = ends ? ticks() : 0;
  const Pieces pieces(payloads, domain);
  const auto head_slots = static_cast<std::uint32_t>(1 + extension.size());
  const Priority priority = type == EventType::push ? priority_of_push(writer.depth) : priority_of(type);
  Slot* const first = claim(pieces.slots() + head_slots, priority);
  if (first == nullptr) return false;
  Slot* slot = first;
  for (const Piece& piece : pieces.all()) {
    memcpy(static_cast<void*>(slot + 1), piece.from, piece.bytes);  // the rest of the last slot is zero already
    slot += slots_for(piece.bytes);
  }
  std::copy(extension.begin(), extension.end(), slot + 1);
  // The cost of the payload is not part of the range.
  const std::uint64_t at = ends ? begin : ticks();
  slot = first;
  for (const Piece& piece : pieces.all()) {
    publish(slot, slots_for(piece.bytes), piece.type, piece.key | std::uint64_t{piece.bytes} << 32, at);
    slot += slots_for(piece.bytes);
  }
  publish(slot, head_slots, type, low, at);
  return true;
}

void emit_push_with_payloads(const Payloads& payloads, std::uint16_t domain, std::uint64_t scope) {
  if (!emit_with_payloads(payloads, domain, EventType::push, scope)) drop_push();
  ++writer.depth;
}

void emit_pop_with_payloads(const Payloads& payloads, std::uint16_t domain) {
  if (payloads.empty()) return emit_pop(domain);
  if (!close_push()) return drop_event();
  // If there is no room for the payloads, there may be room for the pop.
  if (!emit_with_payloads(payloads, domain, EventType::pop, domain) && !emit(EventType::pop, domain)) defer_pop(domain);
}

}  // namespace paceline::inject
