// SPDX-License-Identifier: Apache-2.0
// Payloads that NVTX's payload extension attaches to ranges and marks: each is a block of bytes with a schema that
// describes them. Both are recorded unchanged; the reader of the trace interprets them.
#pragma once

#include <stddef.h>

#include "profiler/inject/sources/nvtx/schemas.h"
//
#include <nvtx3/nvToolsExtPayload.h>

#include <cstdint>
#include <span>

#include "profiler/inject/buffer/writer.h"

namespace paceline::inject {

struct Payloads {
  const nvtxPayloadData_t* data = nullptr;
  std::size_t count = 0;
  bool empty() const { return data == nullptr || count == 0; }
};

// Writes the payloads, the memory that their pointers refer to as far as the schemas ask for it, and the event, in one
// piece of one chunk. Returns false if no chunk was free: the event is dropped and counted. No lock, no allocation.
bool emit_with_payloads(const Payloads& payloads, std::uint16_t domain, EventType type, std::uint64_t low,
                        std::span<const Slot> extension = {});
inline bool emit_with_payloads(const Payloads& payloads, std::uint16_t domain, EventType type, std::uint64_t low,
                               const Slot& extension) {
  return emit_with_payloads(payloads, domain, type, low, std::span(&extension, 1));
}

// A range's begin and end as emit_push() and emit_pop() write them, with payloads.
void emit_push_with_payloads(const Payloads& payloads, std::uint16_t domain, std::uint64_t scope);
void emit_pop_with_payloads(const Payloads& payloads, std::uint16_t domain);

}  // namespace paceline::inject
