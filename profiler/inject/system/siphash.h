// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4, a keyed hash for short messages: J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF",
// INDOCRYPT 2012. Whoever does not know the key cannot make a message with a valid hash, nor learn the key from
// messages.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace paceline::inject {

struct SipKey {
  std::uint64_t low = 0, high = 0;
};

// The hash of a message of whole 64-bit words. Cost: some 20 ns for four words.
inline std::uint64_t siphash(const SipKey& key, std::span<const std::uint64_t> words) {
  std::uint64_t v0 = key.low ^ 0x736f6d6570736575, v1 = key.high ^ 0x646f72616e646f6d;
  std::uint64_t v2 = key.low ^ 0x6c7967656e657261, v3 = key.high ^ 0x7465646279746573;
  const auto rounds = [&](int count) {
    for (; count > 0; --count) {
      v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }
  };
  const auto take = [&](std::uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  };
  for (const std::uint64_t word : words) take(word);
  take(
      std::uint64_t{words.size() * 8} << 56);  // the last word of the algorithm: the length, and no bytes that are left
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace paceline::inject
