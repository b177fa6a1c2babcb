// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/nvtx/schemas.h"

#include <nvtx3/nvToolsExtSemanticsTime.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "profiler/inject/buffer/emit_event.h"

namespace paceline::inject {
namespace {

using format::payload::array_kind;
using format::payload::ArrayKind;
using format::payload::SchemaType;

constexpr std::uint64_t dynamic_bit = NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START;
constexpr std::size_t most_entries = 1024;  // of one schema or enumeration; further entries are left out

struct Entry {
  std::atomic<std::uint64_t> key{0};   // domain:16 << 32 | number:32; 0: empty. Stored last.
  std::uint64_t hash = 0;              // of the whole registration
  std::atomic<bool> ambiguous{false};  // another schema was registered under the same id
  KnownSchema schema;
};
constexpr std::uint32_t entries = 4096;
constexpr std::uint32_t most_pointers = 8192;

Entry table[entries];  // open addressing, at most half full
PointerEntry pointer_pool[most_pointers];
std::uint32_t schemas_used = 0, pointers_used = 0;
std::uint32_t next_number = format::payload::first_schema;
std::atomic<bool> pointers_there{false};
pthread_mutex_t registration = PTHREAD_MUTEX_INITIALIZER;

// The program's own numbers belong to their domain; the recorder's are unique.
std::uint64_t key_of(std::uint16_t domain, std::uint32_t number) {
  return (number >= format::payload::first_own_schema ? std::uint64_t{domain} << 32 : 0) | number;
}

// The entry of this key, or the empty place for it.
Entry& place_of(std::uint64_t key) {
  std::uint32_t at = static_cast<std::uint32_t>(key * 0x9e3779b97f4a7c15U >> 52) % entries;
  for (;; at = (at + 1) % entries) {
    const std::uint64_t there = table[at].key.load(std::memory_order_acquire);
    if (there == key || there == 0) return table[at];
  }
}

// One registration. Its slots are built once for the hash and once, with the number that it got, for the file.
class Registration {
 public:
  Registration(std::uint16_t domain, std::uint64_t wanted_id) : domain_(domain), hash_(domain) {
    const bool own = wanted_id >= format::payload::first_own_schema && wanted_id < dynamic_bit;
    own_ = own ? static_cast<std::uint32_t>(wanted_id) : 0;
    pthread_mutex_lock(&registration);
  }
  ~Registration() { pthread_mutex_unlock(&registration); }

  void hash(std::uint64_t value) { hash_ = XXH3_64bits_withSeed(&value, sizeof value, hash_); }

  // Finds or assigns the number. Returns true if the registration must be recorded.
  bool is_new() {
    if (own_ != 0) {
      entry_ = &place_of(key_of(domain_, own_));
      number_ = own_;
      if (entry_->key.load(std::memory_order_relaxed) != 0) {
        // A library may register the same schema again. If another one has the same id, the schema of a payload is
        // ambiguous, and its pointers are not followed.
        if (entry_->hash == hash_) return false;
        entry_->ambiguous.store(true, std::memory_order_relaxed);
        entry_ = nullptr;
        return true;
      }
    } else {
      for (Entry& entry : table) {
        const std::uint64_t key = entry.key.load(std::memory_order_relaxed);
        number_ = static_cast<std::uint32_t>(key);
        if (key != 0 && key < format::payload::first_own_schema && entry.hash == hash_) return false;
      }
      number_ = 0;
    }
    if (schemas_used >= entries / 2) {
      entry_ = nullptr;
      if (own_ == 0) count_dropped(format::DropCause::too_many_names);
      return own_ != 0;
    }
    if (own_ == 0) {
      number_ = next_number++;
      entry_ = &place_of(key_of(domain_, number_));
    }
    return true;
  }

  void remember(const KnownSchema& schema) {
    if (entry_ == nullptr) return;
    ++schemas_used;
    entry_->hash = hash_;
    entry_->schema = schema;
    if (!schema.pointers.empty()) pointers_there.store(true, std::memory_order_relaxed);
    entry_->key.store(key_of(domain_, number_), std::memory_order_release);
  }

  std::uint32_t number() const { return number_; }
  std::uint64_t id() const { return own_ != 0 || number_ == 0 ? number_ : dynamic_bit | number_; }

 private:
  std::uint16_t domain_;
  std::uint32_t own_ = 0;
  std::uint32_t number_ = 0;
  std::uint64_t hash_;
  Entry* entry_ = nullptr;
};

// The offsets of a schema's entries, as far as they are equal for all payloads, and which entries are addresses.
class Layout {
 public:
  Layout(std::uint16_t domain, std::uint64_t type, std::uint32_t packing)
      : domain_(domain), packing_(packing), is_union_(type > static_cast<std::uint64_t>(SchemaType::dynamic)) {}

  void add(const nvtxPayloadSchemaEntry_t& entry) {
    Place& place = places_[entries_++ % most_entries];
    place = {};
    if (is_union_) next_ = 0;
    if (!next_is_known_ && entry.offset == 0) return;
    const std::uint32_t type = schema_number(entry.type);
    const auto flags = static_cast<std::uint32_t>(entry.flags);
    const ArrayKind kind = array_kind(flags);
    const KnownSchema element = element_of(type);
    const bool address = format::payload::is_address(type, flags, entry.arrayOrUnionDetail);
    const KnownSchema field = address ? KnownSchema{sizeof(void*), alignof(void*), {}} : element;
    const std::uint64_t begin = format::payload::begin_of(entry.offset, next_, field.align, packing_);
    std::uint64_t count = 1;
    if (!address && (kind == ArrayKind::fixed || (kind == ArrayKind::none && format::payload::is_string(type)))) {
      count = std::max<std::uint64_t>(entry.arrayOrUnionDetail, 1);
    }
    // Behind an array whose length each payload gives, only entries with an offset of their own have a known place.
    const bool varies = !address && kind != ArrayKind::none && kind != ArrayKind::fixed;
    const bool is_offset = (flags & (format::payload::offset_from_base | format::payload::offset_from_here)) != 0;
    next_is_known_ = !varies && !is_offset && field.bytes != 0 && count <= longest_payload && begin <= longest_payload;
    if (!next_is_known_) return;
    place = {static_cast<std::uint32_t>(begin), field.bytes};
    if (address && !is_union_) add_pointer(entry, element, place.offset);
    if (!address && !is_union_) {
      for (const PointerEntry& inner : element.pointers) {
        for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, 16); ++i) {
          add_inner(inner, static_cast<std::uint32_t>(begin + i * field.bytes));
        }
      }
    }
    next_ = begin + count * field.bytes;
    end_ = std::max(end_, next_);
    align_ = std::max(align_, field.align);
  }

  KnownSchema result(std::uint64_t static_bytes) const {
    KnownSchema schema;
    const std::uint32_t align = packing_ != 0 ? std::min(align_, packing_) : align_;
    const std::uint64_t bytes = next_is_known_ ? (end_ + align - 1) / align * align : 0;
    schema.align = align;
    schema.bytes = static_cast<std::uint32_t>(static_bytes != 0 ? static_bytes : bytes);
    schema.pointers = {pointer_pool + first_pointer_, pointers_used - first_pointer_};
    return schema;
  }

 private:
  struct Place {
    std::uint32_t offset, bytes;
  };

  KnownSchema element_of(std::uint32_t type) const {
    if (type >= format::payload::first_schema) {
      const KnownSchema* schema = find_schema(domain_, type);
      return schema != nullptr ? *schema : KnownSchema{};
    }
    const std::uint32_t bytes = format::payload::value_bytes(type);
    return {bytes, std::max(bytes, 1U), {}};
  }

  void add_pointer(const nvtxPayloadSchemaEntry_t& entry, const KnownSchema& element, std::uint32_t offset) {
    PointerEntry pointer;
    pointer.offset = offset;
    pointer.flags = static_cast<std::uint32_t>(entry.flags);
    pointer.unit = element.bytes;
    pointer.text = format::payload::is_string(schema_number(entry.type));
    pointer.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(entry.arrayOrUnionDetail, UINT32_MAX));
    if (array_kind(pointer.flags) == ArrayKind::length_entry) {
      if (entry.arrayOrUnionDetail + 1 >= entries_) return;  // the entry with the length must come before
      const Place length = places_[entry.arrayOrUnionDetail];
      pointer.length = length.offset;
      pointer.length_bytes = length.bytes;
    }
    if (element.bytes != 0) keep(pointer);
  }

  void add_inner(PointerEntry inner, std::uint32_t base) {
    inner.offset += base;
    if (array_kind(inner.flags) == ArrayKind::length_entry) inner.length += base;
    keep(inner);
  }

  static void keep(const PointerEntry& pointer) {
    if (pointers_used < most_pointers) pointer_pool[pointers_used++] = pointer;
  }

  std::uint16_t domain_;
  std::uint32_t packing_;
  bool is_union_;
  bool next_is_known_ = true;
  std::uint64_t next_ = 0, end_ = 0;
  std::uint32_t align_ = 1;
  std::uint32_t entries_ = 0;
  std::uint32_t first_pointer_ = pointers_used;
  static inline Place places_[most_entries];  // guarded by the lock
};

}  // namespace

bool any_pointers() { return pointers_there.load(std::memory_order_relaxed); }

const KnownSchema* find_schema(std::uint16_t domain, std::uint32_t number) {
  const Entry& entry = place_of(key_of(domain, number));
  if (entry.key.load(std::memory_order_acquire) == 0 || entry.ambiguous.load(std::memory_order_relaxed)) return nullptr;
  return &entry.schema;
}

std::uint64_t register_schema(std::uint16_t domain, const nvtxPayloadSchemaAttr_t& given) {
  const auto has = [&](std::uint64_t field) { return (given.fieldMask & field) != 0; };
  if (!has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES) || given.entries == nullptr) return 0;
  if (!has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES)) return 0;
  const std::span<const nvtxPayloadSchemaEntry_t> list(given.entries, std::min(given.numEntries, most_entries));
  const std::uint32_t name = has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME) ? intern_text(given.name) : 0;
  const std::uint64_t type = has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE) ? given.type & 0xffff : 1;
  const std::uint64_t flags = has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_FLAGS) ? given.flags & 0xffffffff : 0;
  const bool is_static = type != static_cast<std::uint64_t>(SchemaType::dynamic);
  const std::uint64_t bytes = is_static && has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE)
                                  ? std::min<std::uint64_t>(given.payloadStaticSize, UINT32_MAX)
                                  : 0;
  const std::uint64_t packing = has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ALIGNMENT) ? given.packAlign & 0xffff : 0;

  events::Schema schema{.name = name,
                        .domain = domain,
                        .schema_type = static_cast<std::uint16_t>(type),
                        .flags = static_cast<std::uint32_t>(flags),
                        .bytes = static_cast<std::uint32_t>(bytes),
                        .packing = static_cast<std::uint16_t>(packing)};
  const auto entry_of = [&](std::size_t i) {
    const nvtxPayloadSchemaEntry_t& entry = list[i];
    return events::SchemaEntry{.name = intern_text(entry.name),
                               .entry_type = schema_number(entry.type),
                               .flags = static_cast<std::uint32_t>(entry.flags),
                               .domain = domain,
                               .index = static_cast<std::uint16_t>(i),
                               .offset = static_cast<std::uint32_t>(std::min<std::uint64_t>(entry.offset, UINT32_MAX)),
                               .length = entry.arrayOrUnionDetail};
  };

  Registration made(domain, has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID) ? given.schemaId : 0);
  for (const std::uint64_t word : format::words_of(schema)) made.hash(word);
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (const std::uint64_t word : format::words_of(entry_of(i))) made.hash(word);
  }
  if (!made.is_new()) return made.id();
  schema.schema = made.number();
  emit_surely(schema);
  Layout layout(domain, type, static_cast<std::uint32_t>(packing));
  for (std::size_t i = 0; i < list.size(); ++i) {
    events::SchemaEntry entry = entry_of(i);
    entry.schema = made.number();
    emit_surely(entry);
    layout.add(list[i]);
  }
  made.remember(layout.result(bytes));
  return made.id();
}

std::uint64_t register_enumeration(std::uint16_t domain, const nvtxPayloadEnumAttr_t& given) {
  const auto has = [&](std::uint64_t field) { return (given.fieldMask & field) != 0; };
  if (!has(NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES) || given.entries == nullptr) return 0;
  if (!has(NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES)) return 0;
  const std::span<const nvtxPayloadEnum_t> list(given.entries, std::min(given.numEntries, most_entries));
  const std::uint32_t name = has(NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME) ? intern_text(given.name) : 0;
  std::uint64_t bytes = has(NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE) ? given.sizeOfEnum : sizeof(int);
  if (bytes == 0 || bytes > 8) bytes = sizeof(int);

  Registration made(domain, has(NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID) ? given.schemaId : 0);
  for (const std::uint64_t word : {std::uint64_t{name}, bytes}) made.hash(word);
  for (const nvtxPayloadEnum_t& value : list) {
    made.hash(intern_text(value.name));
    made.hash(value.value);
    made.hash(value.isFlag != 0 ? 1 : 0);
  }
  if (!made.is_new()) return made.id();
  emit_surely(events::Enumeration{
      .schema = made.number(), .name = name, .domain = domain, .bytes = static_cast<std::uint16_t>(bytes)});
  for (const nvtxPayloadEnum_t& value : list) {
    emit_surely(events::Enumerator{.schema = made.number(),
                                   .name = intern_text(value.name),
                                   .value = value.value,
                                   .domain = domain,
                                   .is_flag = static_cast<std::uint8_t>(value.isFlag != 0 ? 1 : 0)});
  }
  made.remember({static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(bytes), {}});
  return made.id();
}

void reset_schemas_in_child() { pthread_mutex_init(&registration, nullptr); }

}  // namespace paceline::inject
