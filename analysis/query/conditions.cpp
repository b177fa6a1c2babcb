// SPDX-License-Identifier: Apache-2.0
#include "analysis/query/conditions.h"

#include <algorithm>
#include <cmath>

namespace paceline::analysis {
namespace integer_conditions {

constexpr double too_high = 0x1p63;

// Intersects the range with `comparison` number.
void limit_by(IntegerRange& range, Operator comparison, std::int64_t number) {
  const auto none = [&] { range.low = IntegerRange::highest, range.high = IntegerRange::lowest; };
  switch (comparison) {
    case Operator::equal:
      range.low = std::max(range.low, number);
      range.high = std::min(range.high, number);
      break;
    case Operator::less:
      if (number == IntegerRange::lowest) return none();
      range.high = std::min(range.high, number - 1);
      break;
    case Operator::at_most:
      range.high = std::min(range.high, number);
      break;
    case Operator::greater:
      if (number == IntegerRange::highest) return none();
      range.low = std::max(range.low, number + 1);
      break;
    case Operator::at_least:
      range.low = std::max(range.low, number);
      break;
    default:
      break;
  }
}

bool upwards(Operator comparison) { return comparison == Operator::greater || comparison == Operator::at_least; }
bool downwards(Operator comparison) { return comparison == Operator::less || comparison == Operator::at_most; }

}  // namespace integer_conditions

void IntegerRange::limit(Operator comparison, sqlite3_value* value) {
  using namespace integer_conditions;
  const auto none = [&] { low = highest, high = lowest; };
  const int type = sqlite3_value_numeric_type(value);
  if (type == SQLITE_INTEGER) return limit_by(*this, comparison, sqlite3_value_int64(value));
  if (type == SQLITE_NULL) return none();
  if (type == SQLITE_FLOAT) {
    const double number = sqlite3_value_double(value);
    if (number >= too_high) return downwards(comparison) ? void() : none();
    if (number < -too_high) return upwards(comparison) ? void() : none();
    const double below = std::floor(number);
    if (below == number) return limit_by(*this, comparison, static_cast<std::int64_t>(number));
    if (comparison == Operator::equal) return none();
    return limit_by(*this, upwards(comparison) ? Operator::greater : Operator::at_most,
                    static_cast<std::int64_t>(below));
  }
  // Bytes, and text that does not parse as a number, sort after all numbers.
  if (!downwards(comparison)) none();
}

TextCondition::TextCondition(Operator comparison, sqlite3_value* value) : comparison_(comparison) {
  if (sqlite3_value_type(value) != SQLITE_TEXT) return;
  decides_ = true;
  pattern_.assign(reinterpret_cast<const char*>(sqlite3_value_text(value)),
                  static_cast<std::size_t>(sqlite3_value_bytes(value)));
}

bool TextCondition::accepts(const std::string& text) const {
  if (!decides_) return true;
  switch (comparison_) {
    case Operator::equal:
      return text == pattern_;
    case Operator::like:
      return sqlite3_strlike(pattern_.c_str(), text.c_str(), 0) == 0;
    case Operator::glob:
      return sqlite3_strglob(pattern_.c_str(), text.c_str()) == 0;
    default:
      return true;
  }
}

}  // namespace paceline::analysis
