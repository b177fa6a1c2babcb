// SPDX-License-Identifier: Apache-2.0
// What the conditions of a statement mean for a column's values, by SQLite's rules for comparisons.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "analysis/query/table.h"

namespace paceline::analysis {

// The integers that satisfy all conditions given to limit(). A number that is text counts as a number, as SQLite
// compares it with a column of type INTEGER.
struct IntegerRange {
  static constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  std::int64_t low = lowest, high = highest;

  void limit(Operator comparison, sqlite3_value* value);
  bool contains(std::int64_t value) const { return value >= low && value <= high; }
  bool empty() const { return low > high; }
  bool limited() const { return low != lowest || high != highest; }
  bool has_low() const { return low != lowest; }
  bool has_high() const { return high != highest; }
};

// A text that has to be equal to, LIKE or GLOB a value. A value that is not text leaves the decision to SQLite.
class TextCondition {
 public:
  TextCondition(Operator comparison, sqlite3_value* value);
  bool accepts(const std::string& text) const;

 private:
  Operator comparison_;
  bool decides_ = false;
  std::string pattern_;
};

// True for the comparisons of a range: =, <, <=, > and >=.
constexpr bool is_range(Operator comparison) {
  return comparison != Operator::like && comparison != Operator::glob && comparison != Operator::none;
}

}  // namespace paceline::analysis
