// SPDX-License-Identifier: Apache-2.0
// The checksums of the .pace format, all XXH3 with 64 bits.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>

#include "profiler/format/layout.h"

namespace paceline::format {

// FileHeader::hash: the constant fields.
inline std::uint64_t header_hash(const FileHeader& header) { return XXH3_64bits(&header, offsetof(FileHeader, hash)); }

// BlockHeader::hash: the block's header, by way of the seed, and its payload of header.payload_bytes bytes.
inline std::uint64_t block_hash(const BlockHeader& header, const void* payload) {
  const std::size_t hashed =
      header.kind == block_kind_plain ? offsetof(BlockHeader, first_ticks) : offsetof(BlockHeader, hash);
  return XXH3_64bits_withSeed(payload, header.payload_bytes, XXH3_64bits(&header, hashed));
}

}  // namespace paceline::format
