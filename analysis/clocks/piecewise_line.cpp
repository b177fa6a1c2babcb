// SPDX-License-Identifier: Apache-2.0
#include "analysis/clocks/piecewise_line.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace paceline::analysis {

PiecewiseLine::PiecewiseLine(std::vector<Knot> knots, double slope_before, double slope_after)
    : knots_(std::move(knots)), before_(slope_before), after_(slope_after) {}

PiecewiseLine::Piece PiecewiseLine::piece(double x) const {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const auto next = std::ranges::upper_bound(knots_, x, {}, &Knot::x);
  if (next == knots_.begin()) return {-infinite, next->x, next->x, next->y, before_};
  const Knot& left = *std::prev(next);
  if (next == knots_.end()) return {left.x, infinite, left.x, left.y, after_};
  return {left.x, next->x, left.x, left.y, (next->y - left.y) / (next->x - left.x)};
}

PiecewiseLine PiecewiseLine::inverse() const {
  std::vector<Knot> turned;
  turned.reserve(knots_.size());
  for (const Knot& knot : knots_) turned.push_back({knot.y, knot.x});
  return {std::move(turned), 1 / before_, 1 / after_};
}

PiecewiseLine after(const PiecewiseLine& outer, const PiecewiseLine& inner) {
  const PiecewiseLine back = inner.inverse();
  std::vector<PiecewiseLine::Knot> knots;
  for (const auto& knot : inner.knots()) knots.push_back({knot.x, outer(knot.y)});
  for (const auto& knot : outer.knots()) knots.push_back({back(knot.x), knot.y});
  std::ranges::sort(knots, {}, &PiecewiseLine::Knot::x);
  // Knots that coincide after rounding are one knot.
  std::vector<PiecewiseLine::Knot> rising;
  for (const auto& knot : knots) {
    if (rising.empty() || (knot.x - rising.back().x > 1e-3 && knot.y > rising.back().y)) rising.push_back(knot);
  }
  return {std::move(rising), outer.slope_before() * inner.slope_before(), outer.slope_after() * inner.slope_after()};
}

}  // namespace paceline::analysis
