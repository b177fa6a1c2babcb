// The values of events: Ranges, marks, payloads and resources of NVTX. See events.h.
#pragma once

#include <cstdint>
#include <tuple>

#include "profiler/format/packing.h"

namespace paceline::format::events {

// Ranges and marks of NVTX. A scope is made by pack_scope().

struct Push {
  static constexpr EventType type = EventType::push;
  std::uint64_t scope = 0;
  static constexpr auto values() { return std::tuple(low(&Push::scope, 0)); }
};

struct PushPayload {
  static constexpr EventType type = EventType::push_payload;
  std::uint64_t scope = 0;
  PayloadType payload_type = PayloadType::none;
  std::uint64_t value = 0;  // the payload's bits
  static constexpr auto values() {
    return std::tuple(low(&PushPayload::scope, 0), ext_high(&PushPayload::payload_type, 0),
                      ext_low(&PushPayload::value, 0));
  }
};

// Ends the latest open push of that domain on this track.
struct Pop {
  static constexpr EventType type = EventType::pop;
  std::uint16_t domain = 0;
  static constexpr auto values() { return std::tuple(low(&Pop::domain, 0)); }
};

struct Mark {
  static constexpr EventType type = EventType::mark;
  std::uint64_t scope = 0;
  static constexpr auto values() { return std::tuple(low(&Mark::scope, 0)); }
};

struct MarkPayload {
  static constexpr EventType type = EventType::mark_payload;
  std::uint64_t scope = 0;
  PayloadType payload_type = PayloadType::none;
  std::uint64_t value = 0;
  static constexpr auto values() {
    return std::tuple(low(&MarkPayload::scope, 0), ext_high(&MarkPayload::payload_type, 0),
                      ext_low(&MarkPayload::value, 0));
  }
};

struct Start {
  static constexpr EventType type = EventType::start;
  std::uint64_t scope = 0;
  std::uint64_t range = 0;  // id, unique in the process
  static constexpr auto values() { return std::tuple(low(&Start::scope, 0), ext_high(&Start::range, 0)); }
};

struct StartPayload {
  static constexpr EventType type = EventType::start_payload;
  std::uint64_t scope = 0;
  std::uint64_t range = 0;
  std::uint64_t value = 0;
  PayloadType payload_type = PayloadType::none;
  static constexpr auto values() {
    return std::tuple(low(&StartPayload::scope, 0), ext_high(&StartPayload::range, 0), ext_low(&StartPayload::value, 0),
                      ext2_high(&StartPayload::payload_type, 0));
  }
};

// Ends the range that began under the same id, on any track.
struct End {
  static constexpr EventType type = EventType::end;
  std::uint64_t range = 0;
  static constexpr auto values() { return std::tuple(low(&End::range, 0)); }
};

// A range or mark whose times are in its payload.
struct Submit {
  static constexpr EventType type = EventType::submit;
  std::uint64_t scope = 0;
  static constexpr auto values() { return std::tuple(low(&Submit::scope, 0)); }
};

// What NVTX names and describes beside ranges.

struct Resource {
  static constexpr EventType type = EventType::resource;
  std::uint32_t resource = 0;  // 0 = never destroyed
  std::uint32_t name = 0;
  std::uint64_t identifier = 0;
  std::uint32_t resource_type = 0;  // NVTX_RESOURCE_TYPE_…
  std::uint16_t domain = 0;
  static constexpr auto values() {
    return std::tuple(low(&Resource::resource, 0), low(&Resource::name, 32), ext_high(&Resource::identifier, 0),
                      ext_low(&Resource::resource_type, 0), ext_low(&Resource::domain, 32));
  }
};

// The resource was destroyed.
struct ResourceEnd {
  static constexpr EventType type = EventType::resource_end;
  std::uint32_t resource = 0;
  static constexpr auto values() { return std::tuple(low(&ResourceEnd::resource, 0)); }
};

struct Schema {
  static constexpr EventType type = EventType::schema;
  std::uint32_t schema = 0;
  std::uint32_t name = 0;
  std::uint16_t domain = 0;
  std::uint16_t schema_type = 0;
  std::uint32_t flags = 0;
  std::uint32_t bytes = 0;
  std::uint16_t packing = 0;
  std::uint64_t time_domain = 0;  // of its time stamps; 0 = none given
  static constexpr auto values() {
    return std::tuple(low(&Schema::schema, 0), low(&Schema::name, 32), ext_high(&Schema::domain, 0),
                      ext_high(&Schema::schema_type, 16), ext_high(&Schema::flags, 32), ext_low(&Schema::bytes, 0),
                      ext_low(&Schema::packing, 32), ext2_high(&Schema::time_domain, 0));
  }
};

struct SchemaEntry {
  static constexpr EventType type = EventType::schema_entry;
  std::uint32_t schema = 0;
  std::uint32_t name = 0;
  std::uint32_t entry_type = 0;  // an NVTX type, or the number of a schema or an enumeration
  std::uint32_t flags = 0;
  std::uint16_t domain = 0;
  std::uint16_t index = 0;
  std::uint32_t offset = 0;
  std::uint64_t length = 0;  // array length or union detail
  static constexpr auto values() {
    return std::tuple(low(&SchemaEntry::schema, 0), low(&SchemaEntry::name, 32), ext_high(&SchemaEntry::entry_type, 0),
                      ext_high(&SchemaEntry::flags, 32), ext_low(&SchemaEntry::domain, 0),
                      ext_low(&SchemaEntry::index, 16), ext_low(&SchemaEntry::offset, 32),
                      ext2_high(&SchemaEntry::length, 0));
  }
};

struct Enumeration {
  static constexpr EventType type = EventType::enumeration;
  std::uint32_t schema = 0;
  std::uint32_t name = 0;
  std::uint16_t domain = 0;
  std::uint16_t bytes = 0;
  static constexpr auto values() {
    return std::tuple(low(&Enumeration::schema, 0), low(&Enumeration::name, 32), ext_high(&Enumeration::domain, 0),
                      ext_high(&Enumeration::bytes, 16));
  }
};

struct Enumerator {
  static constexpr EventType type = EventType::enumerator;
  std::uint32_t schema = 0;
  std::uint32_t name = 0;
  std::uint64_t value = 0;
  std::uint16_t domain = 0;
  std::uint8_t is_flag = 0;
  static constexpr auto values() {
    return std::tuple(low(&Enumerator::schema, 0), low(&Enumerator::name, 32), ext_high(&Enumerator::value, 0),
                      ext_low(&Enumerator::domain, 0), ext_low(&Enumerator::is_flag, 16, 1));
  }
};

// A payload of the next event of the track. The payload's bytes follow.
struct Payload {
  static constexpr EventType type = EventType::payload;
  std::uint32_t schema = 0;
  std::uint32_t bytes = 0;
  static constexpr auto values() { return std::tuple(low(&Payload::schema, 0), low(&Payload::bytes, 32)); }
};

// Bytes that a pointer in the payload before pointed to. They follow.
struct PayloadPart {
  static constexpr EventType type = EventType::payload_part;
  std::uint32_t offset = 0;  // of the pointer in the payload
  std::uint32_t bytes = 0;
  static constexpr auto values() { return std::tuple(low(&PayloadPart::offset, 0), low(&PayloadPart::bytes, 32)); }
};

struct Scope {
  static constexpr EventType type = EventType::scope;
  std::uint16_t domain = 0;
  std::uint32_t path = 0;  // a name
  std::uint64_t id = 0;
  std::uint64_t parent = 0;  // id
  static constexpr auto values() {
    return std::tuple(low(&Scope::domain, 0), low(&Scope::path, 32), ext_high(&Scope::id, 0),
                      ext_low(&Scope::parent, 0));
  }
};

struct TimeDomain {
  static constexpr EventType type = EventType::time_domain;
  std::uint16_t domain = 0;
  std::uint16_t flags = 0;
  std::uint64_t id = 0;
  std::uint64_t clock_type = 0;        // NVTX_TIMESTAMP_TYPE_…
  std::uint64_t ticks_per_second = 0;  // 0 = not known
  std::uint64_t start = 0;             // NVTX_TIMER_START_…
  static constexpr auto values() {
    return std::tuple(low(&TimeDomain::domain, 0), low(&TimeDomain::flags, 16), ext_high(&TimeDomain::id, 0),
                      ext_low(&TimeDomain::clock_type, 0), ext2_high(&TimeDomain::ticks_per_second, 0),
                      ext2_low(&TimeDomain::start, 0));
  }
};

// One moment in two time domains.
struct TimeSync {
  static constexpr EventType type = EventType::time_sync;
  std::uint16_t domain = 0;
  std::uint64_t first_domain = 0;
  std::uint64_t second_domain = 0;
  std::uint64_t first_time = 0;
  std::uint64_t second_time = 0;
  static constexpr auto values() {
    return std::tuple(low(&TimeSync::domain, 0), ext_high(&TimeSync::first_domain, 0),
                      ext_low(&TimeSync::second_domain, 0), ext2_high(&TimeSync::first_time, 0),
                      ext2_low(&TimeSync::second_time, 0));
  }
};

}  // namespace paceline::format::events
