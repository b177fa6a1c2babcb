// SPDX-License-Identifier: Apache-2.0
// A rising line in straight pieces, which maps the time of one clock to the time of another one.
//
// It is straight between two knots. Before the first knot and after the last one it has slopes of its own. The inverse
// of such a line and the composition of two of them are such lines, too.
#pragma once

#include <vector>

namespace paceline::analysis {

class PiecewiseLine {
 public:
  struct Knot {
    double x = 0, y = 0;
  };

  // The identity.
  PiecewiseLine() : PiecewiseLine({{0, 0}}, 1, 1) {}
  // At least one knot; both x and y rise from knot to knot; slopes above 0.
  PiecewiseLine(std::vector<Knot> knots, double slope_before, double slope_after);

  // The piece of the line from `begin` to before `end`: y + slope · (x − this->x).
  struct Piece {
    double begin = 0, end = 0;
    double x = 0, y = 0, slope = 0;
  };
  // The one that holds x. O(log knots).
  Piece piece(double x) const;

  // O(log knots).
  double operator()(double x) const {
    const Piece at = piece(x);
    return at.y + at.slope * (x - at.x);
  }
  PiecewiseLine inverse() const;

  const std::vector<Knot>& knots() const { return knots_; }
  double slope_before() const { return before_; }
  double slope_after() const { return after_; }

 private:
  std::vector<Knot> knots_;
  double before_, after_;
};

// x → outer(inner(x)).
PiecewiseLine after(const PiecewiseLine& outer, const PiecewiseLine& inner);

}  // namespace paceline::analysis
