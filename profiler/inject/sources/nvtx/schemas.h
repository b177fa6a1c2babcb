// SPDX-License-Identifier: Apache-2.0
// The registered schemas of NVTX payloads. They are recorded as definitions. The recorder remembers what it needs for
// the payloads: the size, and the offsets of pointers that it must follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "profiler/format/payload_layout.h"
#include "profiler/inject/sources/nvtx/handles.h"
//
#include <nvtx3/nvToolsExtPayload.h>

namespace paceline::inject {

// The limits for the payloads of one event: bytes and pieces. Cut payloads are counted.
inline constexpr std::size_t longest_payload = 16 * 1024;
inline constexpr std::size_t most_payload_pieces = 32;

// In events a schema's id has 32 bits. The program's own ids are unchanged; those that the recorder assigns lack the
// bit that NVTX requires in them.
constexpr std::uint32_t schema_number(std::uint64_t id) { return static_cast<std::uint32_t>(id); }

// An entry whose value is an address.
struct PointerEntry {
  std::uint32_t offset = 0;  // of the address in the payload
  std::uint32_t flags = 0;   // of the entry
  std::uint32_t unit = 1;    // bytes of one element there
  bool text = false;         // a string: ends with a zero unless it has a length
  std::uint32_t length = 0;  // by array kind: elements; offset of the length in the payload; index of a payload
  std::uint32_t length_bytes = 0;
};

struct KnownSchema {
  std::uint32_t bytes = 0;  // of one payload; 0: unknown
  std::uint32_t align = 1;
  std::span<const PointerEntry> pointers;
};

// True once a schema with pointers was registered. Until then payloads need no look-up.
bool any_pointers();

// Returns nullptr if the schema is unknown. Cost: a probe of a table, no lock.
const KnownSchema* find_schema(std::uint16_t domain, std::uint32_t number);

// Record a schema or an enumeration and return its id, or 0 if it cannot be recorded. Registering the same one again
// returns the same id.
std::uint64_t register_schema(std::uint16_t domain, const nvtxPayloadSchemaAttr_t& given);
std::uint64_t register_enumeration(std::uint16_t domain, const nvtxPayloadEnumAttr_t& given);

// In a forked child: resets a lock that another thread of the parent may have held.
void reset_schemas_in_child();

}  // namespace paceline::inject
