// The schemas of NVTX payloads that were registered: recorded as definitions, and remembered as far as payloads need it
// when they come: their size, and where pointers are that are to be followed.
#pragma once

#include <cstdint>
#include <span>

#include "profiler/format/payload_layout.h"
#include "profiler/inject/sources/nvtx/payload.h"

namespace paceline::inject {

// In events a schema has 32 bits: the program's own ids as they are, and those given out here without the bit that
// NVTX wants to be set in them.
constexpr std::uint32_t schema_number(std::uint64_t id) { return static_cast<std::uint32_t>(id); }

// An entry whose value is an address.
struct PointerEntry {
  std::uint32_t offset = 0;  // of the address in the payload
  std::uint32_t flags = 0;   // of the entry
  std::uint32_t unit = 1;    // bytes of one element there
  bool text = false;         // a string: ends with a zero unless its length is told
  std::uint32_t length = 0;  // by array kind: elements; offset of the length in the payload; index of a payload
  std::uint32_t length_bytes = 0;
};

struct KnownSchema {
  std::uint32_t bytes = 0;  // of one payload; 0: not known
  std::uint32_t align = 1;
  std::span<const PointerEntry> pointers;
};

// True once any schema with pointers was registered: until then payloads need no look-up.
bool any_pointers();

// nullptr where the schema is not known. A probe of a table; no lock.
const KnownSchema* find_schema(std::uint16_t domain, std::uint32_t number);

// Record a schema or an enumeration and return its id; 0: it cannot be. Registering the same one again returns the
// same.
std::uint64_t register_schema(std::uint16_t domain, const nvtxPayloadSchemaAttr_t& given);
std::uint64_t register_enumeration(std::uint16_t domain, const nvtxPayloadEnumAttr_t& given);

// Lets go of a lock that another thread of the parent may have held.
void reset_schemas_in_child();

}  // namespace paceline::inject
