// From ticks of one file to nanoseconds of the run.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "analysis/clocks/piecewise_line.h"

namespace paceline::analysis {

// Rounds to the nearest integer, halves away from 0. The result is bounded, so that the clocks of a damaged file cannot
// make differences of times overflow.
inline std::int64_t whole_ns(double ns) {
  ns = std::clamp(ns, -4e18, 4e18);
  return static_cast<std::int64_t>(ns + std::copysign(0.5, ns));
}

// Remembers the piece of the line on which the last time was: events of a track come in order.
class PaceClock {
 public:
  // `line` goes from relative ticks to nanoseconds and must outlive this object; `zero` is subtracted.
  PaceClock(const PiecewiseLine& line, double zero) : line_(line), zero_(zero) {}

  std::int64_t operator()(std::uint64_t ticks) const {
    // Ticks have 56 bits, and signed integers are converted faster.
    const auto x = static_cast<double>(static_cast<std::int64_t>(ticks));
    if (x < piece_.begin || x >= piece_.end) piece_ = line_.piece(x);
    return whole_ns(piece_.y + piece_.slope * (x - piece_.x) - zero_);
  }
  std::int64_t at(double ticks) const { return whole_ns(line_(ticks) - zero_); }

 private:
  const PiecewiseLine& line_;
  double zero_;
  mutable PiecewiseLine::Piece piece_{};
};

}  // namespace paceline::analysis
