// Payloads of NVTX's payload extension beside ranges and marks: a blob of bytes each, and a schema that says what the
// bytes are. Both are recorded as they come; what they mean is found out when the trace is read.
#pragma once

#include <stddef.h>

#include "profiler/inject/sources/nvtx/handles.h"
//
#include <nvtx3/nvToolsExtPayload.h>

#include <cstdint>
#include <span>

#include "profiler/inject/core/writer.h"

namespace paceline::inject {

struct Payloads {
  const nvtxPayloadData_t* data = nullptr;
  std::size_t count = 0;
  bool empty() const { return data == nullptr || count == 0; }
};

// Of one event at most so many bytes of payload are kept, in at most so many pieces; what is cut is counted.
inline constexpr std::size_t longest_payload = 16 * 1024;
inline constexpr std::size_t most_payload_pieces = 32;

// Writes the payloads, what their pointers point to as far as the schemas ask for it, and the event, in one piece of
// one chunk. False: no chunk was free; dropped and counted. No lock, no allocation.
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
