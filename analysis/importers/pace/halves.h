// The two numbers that a 64-bit word of an event holds.
#pragma once

#include <cstdint>

namespace paceline::analysis {

inline std::uint32_t low_half(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
inline std::uint32_t high_half(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }

}  // namespace paceline::analysis
