// SPDX-License-Identifier: Apache-2.0
// The values of events: Ranges, marks, payloads and resources of NVTX. See events.h.
#pragma once

#include <cstdint>

#include "profiler/format/event.h"

namespace paceline::format::events {

// Ranges and marks of NVTX. A scope is made by pack_scope().

template <EventType event_type>
struct Scoped {
  static constexpr EventType type = event_type;
  std::uint64_t scope = 0;
};
using Push = Scoped<EventType::push>;
using Mark = Scoped<EventType::mark>;
using Submit = Scoped<EventType::submit>;  // of older recorders: a range or mark whose times are in its payload

template <EventType event_type>
struct ScopedWithPayload {
  static constexpr EventType type = event_type;
  std::uint64_t scope = 0;
  PayloadType payload_type = PayloadType::none;
  std::uint64_t value = 0;  // the payload's bits
};
using PushPayload = ScopedWithPayload<EventType::push_payload>;
using MarkPayload = ScopedWithPayload<EventType::mark_payload>;

// Ends the latest open push of that domain on this track.
struct Pop {
  static constexpr EventType type = EventType::pop;
  std::uint16_t domain = 0;
  std::uint16_t unused[3] = {};
};

struct Start {
  static constexpr EventType type = EventType::start;
  std::uint64_t scope = 0;
  std::uint64_t range = 0;  // id, unique in the process
  std::uint64_t unused = 0;
};

struct StartPayload {
  static constexpr EventType type = EventType::start_payload;
  std::uint64_t scope = 0;
  std::uint64_t range = 0;
  std::uint64_t value = 0;
  PayloadType payload_type = PayloadType::none;
  std::uint64_t unused = 0;
};

// Ends the range that began under the same id, on any track.
struct End {
  static constexpr EventType type = EventType::end;
  std::uint64_t range = 0;
};

// What NVTX names and describes beside ranges.

struct Resource {
  static constexpr EventType type = EventType::resource;
  std::uint32_t resource = 0;  // 0 = never destroyed
  std::uint32_t name = 0;
  std::uint64_t identifier = 0;
  std::uint32_t resource_type = 0;  // NVTX_RESOURCE_TYPE_…
  std::uint16_t domain = 0;
  std::uint16_t unused = 0;
};

// The resource was destroyed.
struct ResourceEnd {
  static constexpr EventType type = EventType::resource_end;
  std::uint32_t resource = 0;
  std::uint32_t unused = 0;
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
  std::uint16_t unused = 0;
  std::uint64_t time_domain = 0;  // of its time stamps; 0 = none given
  std::uint64_t unused2 = 0;
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
  std::uint64_t unused = 0;
};

struct Enumeration {
  static constexpr EventType type = EventType::enumeration;
  std::uint32_t schema = 0;
  std::uint32_t name = 0;
  std::uint16_t domain = 0;
  std::uint16_t bytes = 0;
  std::uint32_t unused[3] = {};
};

struct Enumerator {
  static constexpr EventType type = EventType::enumerator;
  std::uint32_t schema = 0;
  std::uint32_t name = 0;
  std::uint64_t value = 0;
  std::uint16_t domain = 0;
  std::uint64_t is_flag : 1 = 0;
  std::uint64_t unused : 47 = 0;
};

// A payload of the next event of the track. The payload's bytes follow.
struct Payload {
  static constexpr EventType type = EventType::payload;
  std::uint32_t schema = 0;
  std::uint32_t bytes = 0;
};

// Bytes that a pointer in the payload before pointed to. They follow.
struct PayloadPart {
  static constexpr EventType type = EventType::payload_part;
  std::uint32_t offset = 0;  // of the pointer in the payload
  std::uint32_t bytes = 0;
};

// The next three are of older recorders, which recorded NVTX's deferred events.
struct Scope {
  static constexpr EventType type = EventType::scope;
  std::uint16_t domain = 0;
  std::uint16_t unused = 0;
  std::uint32_t path = 0;  // a name
  std::uint64_t id = 0;
  std::uint64_t parent = 0;  // id
};

struct TimeDomain {
  static constexpr EventType type = EventType::time_domain;
  std::uint16_t domain = 0;
  std::uint16_t flags = 0;
  std::uint32_t unused = 0;
  std::uint64_t id = 0;
  std::uint64_t clock_type = 0;        // NVTX_TIMESTAMP_TYPE_…
  std::uint64_t ticks_per_second = 0;  // 0 = not known
  std::uint64_t start = 0;             // NVTX_TIMER_START_…
};

// One moment in two time domains.
struct TimeSync {
  static constexpr EventType type = EventType::time_sync;
  std::uint16_t domain = 0;
  std::uint16_t unused[3] = {};
  std::uint64_t first_domain = 0;
  std::uint64_t second_domain = 0;
  std::uint64_t first_time = 0;
  std::uint64_t second_time = 0;
};

}  // namespace paceline::format::events
