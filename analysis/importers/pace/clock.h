// SPDX-License-Identifier: Apache-2.0
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

  [[gnu::always_inline]] std::int64_t operator()(std::uint64_t ticks) const {
    // On the known part of a piece, whole_ns() has nothing to bound and rounds upwards from the half.
    if (ticks - known_from_ < known_ticks_) return static_cast<std::int64_t>(on_piece(ticks) + 0.5);
    return find(ticks);
  }
  std::int64_t at(double ticks) const { return whole_ns(line_(ticks) - zero_); }

 private:
  // Ticks have 56 bits, and signed integers are converted faster.
  static double number(std::uint64_t ticks) { return static_cast<double>(static_cast<std::int64_t>(ticks)); }
  double on_piece(std::uint64_t ticks) const { return piece_.y + piece_.slope * (number(ticks) - piece_.x) - zero_; }
  [[gnu::noinline]] std::int64_t find(std::uint64_t ticks) const {
    piece_ = line_.piece(number(ticks));
    // Where conversions to double are exact, times rise with ticks.
    const auto whole = [](double x) { return static_cast<std::uint64_t>(std::ceil(std::clamp(x, 0.0, 0x1p53))); };
    const std::uint64_t begin = whole(piece_.begin), end = whole(piece_.end);
    known_from_ = on_piece(begin) >= 0 ? begin : ticks;
    const bool is_known = known_from_ < end && on_piece(known_from_) >= 0 && on_piece(end) <= 4e18;
    known_ticks_ = is_known ? end - known_from_ : 0;
    return whole_ns(on_piece(ticks));
  }

  const PiecewiseLine& line_;
  double zero_;
  mutable PiecewiseLine::Piece piece_{};
  mutable std::uint64_t known_from_ = 0, known_ticks_ = 0;  // the known part of the piece: its first ticks, its length
};

}  // namespace paceline::analysis
