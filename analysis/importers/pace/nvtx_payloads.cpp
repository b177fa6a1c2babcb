// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/nvtx_payloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "analysis/importers/pace/events.h"
#include "profiler/format/payload_layout.h"

namespace paceline::analysis {

using format::EventType;
using format::Slot;
using format::unpack;
namespace events = format::events;
using namespace format::payload;

namespace {

constexpr int deepest_schema = 8;         // schemas in schemas
constexpr int most_entries = 512;         // looked at for one event
constexpr std::size_t most_elements = 8;  // of an array, then "…"
constexpr std::size_t longest_text = 1024;

using Bytes = std::span<const std::byte>;

struct Part {
  std::uint32_t offset = 0;
  Bytes bytes;
};
// A stretch of bytes and what its pointers point to.
struct Blob {
  Bytes bytes;
  std::span<const Part> parts;
};

struct Scalar {
  std::string text;
  Argument number;
  bool is_text = false;
  std::optional<std::uint64_t> integer;

  static Scalar of_text(std::string text) { return {std::move(text), {}, true, {}}; }
  std::string shown() const {
    if (is_text) return text;
    if (number.type == ValueType::signed_integer) return std::to_string(static_cast<std::int64_t>(number.bits));
    return number.type == ValueType::unsigned_integer ? std::to_string(number.bits)
                                                      : fmt::format("{}", number.number());
  }
};

std::uint64_t load(Bytes bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

Scalar of_unsigned(std::uint64_t value) { return {{}, make_argument(0, value), false, value}; }
Scalar of_signed(std::int64_t value) { return {{}, make_argument(0, value), false, static_cast<std::uint64_t>(value)}; }
Scalar of_floating(double value) { return {{}, make_argument(0, value), false, {}}; }

double half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  double size = std::ldexp(fraction, -24);
  if (exponent == 31) {
    size = fraction == 0 ? HUGE_VAL : NAN;
  } else if (exponent > 0) {
    size = std::ldexp(1024 + fraction, exponent - 25);
  }
  return bits >> 15 != 0 ? -size : size;
}

std::string hexadecimal(Bytes bytes) {
  std::string text;
  for (const std::byte byte : bytes.first(std::min<std::size_t>(bytes.size(), 32))) {
    text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  return bytes.size() > 32 ? text + "…" : text;
}

void append_code_point(std::string& out, std::uint32_t code) {
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) code = 0xfffd;
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

// Up to the first zero.
std::string text_of(Bytes bytes, std::uint32_t unit) {
  std::string text;
  for (std::size_t at = 0; at + unit <= bytes.size() && text.size() < longest_text; at += unit) {
    std::uint32_t code = static_cast<std::uint32_t>(load(bytes.subspan(at, unit)));
    if (code == 0) return text;
    if (unit == 1) {
      text += static_cast<char>(code);
      continue;
    }
    if (unit == 2 && code >= 0xd800 && code < 0xdc00 && at + 4 <= bytes.size()) {
      const std::uint32_t low = static_cast<std::uint32_t>(load(bytes.subspan(at + 2, 2)));
      if (low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        at += 2;
      }
    }
    append_code_point(text, code);
  }
  return text.size() >= longest_text ? text + "…" : text;
}

bool is_character(std::uint32_t type) {
  return type == type_char || type == type_char8 || type == type_char16 || type == type_char32 || type == type_wchar ||
         is_string(type);
}

}  // namespace

std::uint64_t PayloadSchemas::key(std::uint16_t domain, std::uint32_t number) {
  return (number >= first_own_schema ? std::uint64_t{domain} << 32 : 0) | number;
}

void PayloadSchemas::take(const Slot& head) {
  switch (type_of(head)) {
    case EventType::schema: {
      const auto defined = unpack<events::Schema>(&head);
      Schema& schema = schemas_[key(defined.domain, defined.schema)];
      schema = {};
      schema.name = defined.name;
      schema.type = defined.schema_type;
      schema.flags = defined.flags;
      schema.stated_bytes = defined.bytes;
      schema.packing = defined.packing;
      break;
    }
    case EventType::schema_entry: {
      const auto entry = unpack<events::SchemaEntry>(&head);
      schemas_[key(entry.domain, entry.schema)].entries.push_back(
          {entry.name, entry.entry_type, entry.flags, entry.index, entry.offset, entry.length});
      break;
    }
    case EventType::enumeration: {
      const auto defined = unpack<events::Enumeration>(&head);
      enumerations_[key(defined.domain, defined.schema)] = {std::clamp<std::uint32_t>(defined.bytes, 1, 8), {}, {}};
      break;
    }
    case EventType::enumerator: {
      const auto enumerator = unpack<events::Enumerator>(&head);
      Enumeration& of = enumerations_[key(enumerator.domain, enumerator.schema)];
      (enumerator.is_flag != 0 ? of.flags : of.values).emplace_back(enumerator.value, enumerator.name);
      break;
    }
    default:
      break;
  }
}

void PayloadSchemas::finish() {
  for (auto& [key, schema] : schemas_) {
    std::ranges::stable_sort(schema.entries, {}, &Entry::index);
    schema.bytes = schema.stated_bytes, schema.align = 0;
  }
  for (auto& [key, schema] : schemas_) measure(static_cast<std::uint16_t>(key >> 32), schema, 0);
  for (auto& [key, of] : enumerations_)
    std::ranges::stable_sort(of.values, {}, &decltype(of.values)::value_type::first);
}

// Each schema is measured once, so a chain of them costs what their entries cost together.
void PayloadSchemas::measure(std::uint16_t domain, Schema& schema, int depth) {
  if (schema.align != 0 || schema.is_open || depth > deepest_schema) return;
  schema.is_open = true;
  std::uint64_t next = 0, end = 0;
  std::uint32_t align = 1;
  bool known = true;
  for (const Entry& entry : schema.entries) {
    if (entry.type >= first_schema) {
      const auto inner = schemas_.find(key(domain, entry.type));
      if (inner != schemas_.end()) measure(domain, inner->second, depth + 1);
    }
    auto [bytes, alignment] = size_of(domain, entry.type);
    std::uint64_t count = 1;
    if (is_address(entry.type, entry.flags, entry.length)) {
      bytes = alignment = 8;
    } else if (array_kind(entry.flags) == ArrayKind::fixed || is_string(entry.type)) {
      count = std::max<std::uint64_t>(entry.length, 1);
    } else if (array_kind(entry.flags) != ArrayKind::none) {
      count = 0;
    }
    known = known && bytes != 0 && count != 0 && count <= UINT32_MAX;
    if (schema.type > static_cast<std::uint32_t>(SchemaType::dynamic)) next = 0;  // a union's members lie on each other
    next = begin_of(entry.offset, next, alignment, schema.packing) + bytes * std::min<std::uint64_t>(count, UINT32_MAX);
    end = std::max(end, next);
    align = std::max(align, alignment);
  }
  schema.is_open = false;
  schema.align = schema.packing != 0 ? std::min(align, schema.packing) : align;
  end = (end + schema.align - 1) / schema.align * schema.align;
  if (schema.bytes == 0 && known) schema.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(end, UINT32_MAX));
}

const PayloadSchemas::Schema* PayloadSchemas::schema(std::uint16_t domain, std::uint32_t number) const {
  const auto found = schemas_.find(key(domain, number));
  return found != schemas_.end() ? &found->second : nullptr;
}

const PayloadSchemas::Enumeration* PayloadSchemas::enumeration(std::uint16_t domain, std::uint32_t number) const {
  const auto found = enumerations_.find(key(domain, number));
  return found != enumerations_.end() ? &found->second : nullptr;
}

std::pair<std::uint32_t, std::uint32_t> PayloadSchemas::size_of(std::uint16_t domain, std::uint32_t type) const {
  if (type < first_schema) {
    const std::uint32_t bytes = value_bytes(type);
    return {bytes, std::max(bytes, 1U)};
  }
  if (const Enumeration* of = enumeration(domain, type)) return {of->bytes, of->bytes};
  const Schema* of = schema(domain, type);
  if (of == nullptr || of->is_open || of->align == 0) return {0, 1};
  return {of->bytes, of->align};
}

// Reads one event's payloads.
class PayloadDecoder {
 public:
  PayloadDecoder(const PayloadSchemas& schemas, std::uint16_t domain, const PayloadSchemas::Lookup& lookup,
                 DecodedPayloads& out)
      : schemas_(schemas), domain_(domain), lookup_(lookup), out_(out) {}

  void payload(std::uint32_t number, const Blob& blob) {
    if (number < first_schema) {
      if (number == type_referenced) return;
      const std::uint32_t bytes = value_bytes(number);
      if (is_string(number)) {
        add("payload", Scalar::of_text(text_of(blob.bytes, bytes)));
      } else if (bytes != 0 && number != type_byte && blob.bytes.size() >= bytes) {
        array("payload", number, bytes, blob.bytes, blob.bytes.size() / bytes, false);
      } else {
        add("payload", Scalar::of_text(hexadecimal(blob.bytes)));
      }
    } else if (const auto* schema = schemas_.schema(domain_, number)) {
      read(*schema, blob, 0, "", 0);
    } else if (const auto* values = schemas_.enumeration(domain_, number);
               values && blob.bytes.size() >= values->bytes) {
      add("payload", scalar(number, blob.bytes.first(values->bytes)));
    } else {
      add("payload", Scalar::of_text(fmt::format("{} bytes of schema {}", blob.bytes.size(), number)));
    }
  }

 private:
  using Entry = PayloadSchemas::Entry;
  using Schema = PayloadSchemas::Schema;
  struct Seen {  // an entry that gave one integer
    std::uint32_t index;
    std::uint64_t value;
  };

  // `base`: where the schema's bytes begin in the blob.
  void read(const Schema& schema, const Blob& blob, std::uint64_t base, const std::string& prefix, int depth,
            std::optional<std::uint64_t> only = {}) {
    if (depth > deepest_schema) return;
    const bool is_union = schema.type > static_cast<std::uint32_t>(SchemaType::dynamic);
    if (is_union && !only) return;  // nobody says which member it is
    std::vector<Seen> seen;
    std::uint64_t next = 0;
    bool next_is_known = true;
    for (const Entry& entry : schema.entries) {
      if (++entries_ > most_entries) return;
      if (is_union) next = 0;
      if (only && entry.index != *only) continue;
      if (!next_is_known && entry.offset == 0) continue;
      const auto [unit, alignment] = schemas_.size_of(domain_, entry.type);
      const bool address = is_address(entry.type, entry.flags, entry.length);
      const std::uint64_t at = base + begin_of(entry.offset, next, address ? 8 : alignment, schema.packing);
      if (at > blob.bytes.size()) return;  // the payload was cut, or is shorter than its schema
      const std::uint64_t used = entry_at(entry, unit, address, blob, at, prefix, depth, seen);
      next_is_known = used != 0;
      next = at - base + used;
    }
  }

  // Reads one entry and returns how many bytes it takes in the payload; 0: not known.
  std::uint64_t entry_at(const Entry& entry, std::uint32_t unit, bool address, const Blob& blob, std::uint64_t at,
                         const std::string& prefix, int depth, std::vector<Seen>& seen) {
    const std::string_view given = lookup_.name(entry.name);
    const std::string name = prefix + (given.empty() ? fmt::format("entry {}", entry.index) : std::string(given));
    const Bytes rest = blob.bytes.subspan(at);
    if ((entry.flags & (offset_from_base | offset_from_here)) != 0) return 0;
    if (address) {
      if (rest.size() < 8) return 0;
      const std::uint64_t target = load(rest.first(8));
      const auto part = std::ranges::find(blob.parts, at, &Part::offset);
      if (part != blob.parts.end()) {
        value(entry, unit, {part->bytes, {}}, 0, part->bytes.size(), name, depth, seen);
      } else if (target != 0) {
        add(entry, name, Scalar::of_text(fmt::format("0x{:x}", target)));
      }
      return 8;
    }
    const ArrayKind kind = array_kind(entry.flags);
    std::uint64_t size = unit;
    if (kind == ArrayKind::fixed || (kind == ArrayKind::none && is_string(entry.type))) {
      const std::uint64_t count = std::max<std::uint64_t>(entry.length, 1);
      if (count > blob.bytes.size()) return 0;
      size = count * unit;
    } else if (kind == ArrayKind::zero_terminated) {
      if (unit == 0) return 0;
      size = 0;
      while (size + unit <= rest.size() &&
             std::ranges::any_of(rest.subspan(size, unit), [](std::byte b) { return b != std::byte{0}; })) {
        size += unit;
      }
      size += unit;
    } else if (kind != ArrayKind::none) {
      const std::optional<std::uint64_t> count = length_of(entry, seen);
      if (!count || *count > blob.bytes.size()) return 0;
      size = *count * unit;
    }
    value(entry, unit, blob, at, std::min<std::uint64_t>(size, rest.size()), name, depth, seen);
    return size;
  }

  std::optional<std::uint64_t> length_of(const Entry& entry, const std::vector<Seen>& seen) const {
    if (array_kind(entry.flags) != ArrayKind::length_entry) return {};
    const auto found = std::ranges::find(seen, entry.length, &Seen::index);
    if (found == seen.end()) return {};
    return static_cast<std::int64_t>(found->value) < 0 ? 0 : found->value;
  }

  // `size` bytes from `at` on, which are one value of the entry's type or an array of them.
  void value(const Entry& entry, std::uint32_t unit, const Blob& blob, std::uint64_t at, std::uint64_t size,
             const std::string& name, int depth, std::vector<Seen>& seen) {
    const Bytes bytes = blob.bytes.subspan(at, size);
    const bool is_array = array_kind(entry.flags) != ArrayKind::none;
    if (is_string(entry.type) || (is_array && is_character(entry.type))) {
      add(entry, name, Scalar::of_text(text_of(bytes, std::max(unit, 1U))));
      return;
    }
    if (entry.type == type_byte && is_array) {
      add(entry, name, Scalar::of_text(hexadecimal(bytes)));
      return;
    }
    if (const Schema* inner = schemas_.schema(domain_, entry.type)) {
      std::optional<std::uint64_t> member;
      if (inner->type == static_cast<std::uint32_t>(SchemaType::union_outside_selector)) {
        const auto selector = std::ranges::find(seen, entry.length, &Seen::index);
        if (selector == seen.end()) return;
        member = selector->value;
      }
      if (!is_array) return read(*inner, blob, at, name + ".", depth + 1, member);
      for (std::uint64_t i = 0; i < most_elements && unit != 0 && (i + 1) * unit <= size; ++i) {
        read(*inner, blob, at + i * unit, fmt::format("{}[{}].", name, i), depth + 1, member);
      }
      return;
    }
    if (unit == 0 || bytes.size() < unit) return;
    if (is_array) return array(name, entry.type, unit, bytes, bytes.size() / unit, true, &entry);
    const Scalar one = scalar(entry.type, bytes.first(unit));
    if (one.integer) seen.push_back({entry.index, *one.integer});
    add(entry, name, one);
  }

  // The first elements, and how many there are in all. One alone needs no brackets where it is no array.
  void array(const std::string& name, std::uint32_t type, std::uint32_t unit, Bytes bytes, std::uint64_t count,
             bool is_array, const Entry* entry = nullptr) {
    if (count == 1 && !is_array) return add(name, scalar(type, bytes.first(unit)));
    std::string text = "[";
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, most_elements); ++i) {
      text += (i > 0 ? ", " : "") + scalar(type, bytes.subspan(i * unit, unit)).shown();
    }
    text += count > most_elements ? fmt::format(", … {} in all]", count) : "]";
    if (entry != nullptr) {
      add(*entry, name, Scalar::of_text(std::move(text)));
    } else {
      add(name, Scalar::of_text(std::move(text)));
    }
  }

  Scalar scalar(std::uint32_t type, Bytes bytes) const {
    const std::uint64_t bits = load(bytes);
    switch (type) {
      case type_char:
      case type_int8:
        return of_signed(static_cast<std::int8_t>(bits));
      case type_short:
      case type_int16:
        return of_signed(static_cast<std::int16_t>(bits));
      case type_int:
      case type_int32:
        return of_signed(static_cast<std::int32_t>(bits));
      case type_long:
      case type_longlong:
      case type_int64:
        return of_signed(static_cast<std::int64_t>(bits));
      case type_float:
      case type_float32:
      case type_tf32:
        return of_floating(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
      case type_double:
      case type_float64:
        return of_floating(std::bit_cast<double>(bits));
      case type_float16:
        return of_floating(half(static_cast<std::uint16_t>(bits)));
      case type_bf16:
        return of_floating(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
      case type_address:
        return Scalar::of_text(fmt::format("0x{:x}", bits));
      case type_color:
        return Scalar::of_text(fmt::format("#{:08x}", bits));
      case type_registered_string:
        return Scalar::of_text(std::string(lookup_.name(bits)));
      case type_longdouble:
      case type_int128:
      case type_uint128:
      case type_float128:
        return Scalar::of_text(hexadecimal(bytes));
      case type_category:
        if (domain_ < lookup_.categories.size()) {
          const auto found = lookup_.categories[domain_].find(static_cast<std::uint32_t>(bits));
          if (found != lookup_.categories[domain_].end()) {
            return Scalar::of_text(std::string(lookup_.name(found->second)));
          }
        }
        return of_unsigned(bits);
      default:
        break;
    }
    if (const auto* values = schemas_.enumeration(domain_, type)) return enumerator(*values, bits);
    return of_unsigned(bits);
  }

  Scalar enumerator(const PayloadSchemas::Enumeration& of, std::uint64_t bits) const {
    Scalar scalar = of_unsigned(bits);
    const std::uint64_t mask = of.bytes < 8 ? (std::uint64_t{1} << 8 * of.bytes) - 1 : ~std::uint64_t{0};
    const auto found = std::ranges::lower_bound(of.values, bits, {}, [&](const auto& value) { return value.first; });
    std::string text;
    if (found != of.values.end() && (found->first & mask) == bits) {
      text = lookup_.name(found->second);
    } else {
      for (std::size_t i = 0; i < std::min<std::size_t>(of.flags.size(), 64); ++i) {
        const auto& [value, name] = of.flags[i];
        if (value == 0 || (bits & value) != value) continue;
        text += (text.empty() ? "" : " | ") + std::string(lookup_.name(name));
      }
    }
    if (!text.empty()) scalar.text = std::move(text), scalar.is_text = true;
    return scalar;
  }

  void add(const Entry& entry, const std::string& name, Scalar value) {
    if ((entry.flags & event_message) != 0 && value.is_text) {
      out_.message = std::move(value.text);
    } else if ((entry.flags & hidden) == 0) {
      add(name, std::move(value));
    }
  }
  void add(const std::string& name, Scalar value) {
    if (out_.values.size() >= PayloadSchemas::most_values) return;
    out_.values.push_back({name, value.number, std::move(value.text), value.is_text});
  }

  const PayloadSchemas& schemas_;
  std::uint16_t domain_;
  const PayloadSchemas::Lookup& lookup_;
  DecodedPayloads& out_;
  int entries_ = 0;
};

void PayloadSchemas::decode(std::uint16_t domain, std::span<const Slot> slots, const Lookup& lookup,
                            DecodedPayloads& out) const {
  PayloadDecoder decoder(*this, domain, lookup, out);
  std::vector<Part> parts;
  for (std::size_t at = 0; at < slots.size();) {
    const Slot& head = slots[at];
    const std::size_t next = at + 1 + extension_slots(head);
    if (next > slots.size()) return;
    std::size_t end = next;
    parts.clear();
    while (end < slots.size() && type_of(slots[end]) == EventType::payload_part) {
      const std::size_t after = end + 1 + extension_slots(slots[end]);
      if (after > slots.size()) return;
      parts.push_back({unpack<events::PayloadPart>(&slots[end]).offset, bytes_of(slots[end])});
      end = after;
    }
    if (type_of(head) == EventType::payload) {
      decoder.payload(unpack<events::Payload>(&head).schema, {bytes_of(head), parts});
    }
    at = end;
  }
}

}  // namespace paceline::analysis
