// SPDX-License-Identifier: Apache-2.0
// The question and the answer of the clock exchange. Both are sealed with the job's secret, so that nobody else gets an
// answer or can make one.
#pragma once

#include <cstdint>

#include "profiler/inject/sources/clock_exchange/beacon.h"
#include "profiler/inject/system/siphash.h"

namespace paceline::inject {

// Question and answer have the same length, so that a forged question gains nothing.
struct Packet {
  std::uint64_t sequence = 0;
  std::uint64_t ticks = 0;  // of the process that answers; 0 in a question
  std::uint64_t seal = 0;
};

enum class PacketKind : std::uint64_t { question = 1, answer = 2 };

// The seal of a packet that goes to or comes from the process that left this beacon.
inline std::uint64_t seal_of(const SipKey& secret, PacketKind kind, const Beacon& answering, const Packet& packet) {
  const std::uint64_t words[] = {static_cast<std::uint64_t>(kind),
                                 answering.job,
                                 answering.domain,
                                 std::uint64_t{static_cast<std::uint32_t>(answering.rank)} << 32 | answering.port,
                                 packet.sequence,
                                 packet.ticks};
  return siphash(secret, words);
}

}  // namespace paceline::inject
