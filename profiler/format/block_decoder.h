// SPDX-License-Identifier: Apache-2.0
// Turns a block's payload back into slots. Every byte may be hostile: the decoder checks sizes and counts before it
// uses them, and never decompresses more than max_raw_bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "profiler/format/event_table.h"
#include "profiler/format/layout.h"

namespace paceline::format {

// Reads the header of the block at the front of `bytes`, of either kind, and returns its length; 0 if it is not whole.
// A header of kind 1 has no summary: it becomes all zeros.
std::size_t read_block_header(std::span<const std::byte> bytes, BlockHeader& header);

// Checks a block before it is decoded. Returns nullptr, or a description of the error.
const char* check_block(const BlockHeader& header, std::span<const std::byte> payload);

class BlockDecoder {
 public:
  BlockDecoder();
  ~BlockDecoder();
  BlockDecoder(const BlockDecoder&) = delete;
  BlockDecoder& operator=(const BlockDecoder&) = delete;

  // Writes the block's header.slots slots to the front of `into`, which has room for slots_per_chunk, and returns
  // nullptr; or returns a description of the error in a few words, and what `into` holds means nothing. `payload` are
  // the bytes after the header. Cost: linear in slots.
  const char* decode(const BlockHeader& header, std::span<const std::byte> payload, std::span<Slot> into);

  // As above, appended to `slots`, which stay as they are on an error.
  const char* decode(const BlockHeader& header, std::span<const std::byte> payload, std::vector<Slot>& slots);

  // Appends the types of the block's events to `types` without decoding the rest. On an error `types` stay as they are.
  const char* decode_types(const BlockHeader& header, std::span<const std::byte> payload,
                           std::vector<EventType>& types);

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace paceline::format
