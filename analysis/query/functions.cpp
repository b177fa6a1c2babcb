// SPDX-License-Identifier: Apache-2.0
#include "analysis/query/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <string>
#include <vector>

#include "analysis/query/argument_table.h"
#include "analysis/text/numbers.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace sql_functions {

constexpr QueryFunction descriptions[] = {
    {"argument(id, key)", "value of the argument `key` of a slice or mark, or NULL"},
    {"phase(kind)", "phase that the rules give a kind, or NULL where it takes that of the slice around it"},
    {"duration_text(ns)", "a duration for people: '12.3 ms'"},
    {"median(x)", "aggregate: the middle value, interpolated"},
    {"percentile(x, p)", "aggregate: the p-th percentile, p from 0 to 100, interpolated as in NumPy"},
    {"stddev(x)", "aggregate: the standard deviation of a sample; NULL for fewer than 2 values"},
};

RunData& data_of(sqlite3_context* context) { return *static_cast<RunData*>(sqlite3_user_data(context)); }

void argument(sqlite3_context* context, int, sqlite3_value** values) {
  const RunData& data = data_of(context);
  if (sqlite3_value_type(values[0]) != SQLITE_INTEGER || sqlite3_value_type(values[1]) == SQLITE_NULL) return;
  std::uint32_t position = 0;
  const Slices* events = find_event(data, sqlite3_value_int64(values[0]), position);
  if (events == nullptr || events->record[position] == 0) return;
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[1]));
  if (text == nullptr) return sqlite3_result_error_nomem(context);
  const std::string_view wanted(text, static_cast<std::size_t>(sqlite3_value_bytes(values[1])));
  bool found = false;
  events->each_argument(position, [&](const Argument& of) {
    if (found || data.trace().names[of.key] != wanted) return;
    found = true;
    give_argument(context, data.trace().names, of);
  });
}

void phase(sqlite3_context* context, int, sqlite3_value** values) {
  RunData& data = data_of(context);
  const sqlite3_int64 kind = sqlite3_value_int64(values[0]);
  if (sqlite3_value_type(values[0]) != SQLITE_INTEGER || kind < 0 ||
      kind >= static_cast<sqlite3_int64>(data.trace().kinds.size())) {
    return;
  }
  if (const auto found = data.index().phases().phase(static_cast<KindId>(kind))) give_text(context, phase_name(*found));
}

void duration_text(sqlite3_context* context, int, sqlite3_value** values) {
  const int type = sqlite3_value_numeric_type(values[0]);
  std::string text;
  if (type == SQLITE_INTEGER) {
    text = duration(sqlite3_value_int64(values[0]));
  } else if (type == SQLITE_FLOAT) {
    text = seconds(sqlite3_value_double(values[0]) * 1e-9);
  } else {
    return;
  }
  sqlite3_result_text(context, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

// The numbers that a quantile is taken of. Integers stay exact.
struct Values {
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  double percent = 50;
};

// The state of an aggregate lives behind a pointer that SQLite keeps; 0 before the first row.
Values* values_of(sqlite3_context* context, bool make) {
  auto** place = static_cast<Values**>(sqlite3_aggregate_context(context, make ? sizeof(Values*) : 0));
  if (place == nullptr) return nullptr;
  if (*place == nullptr && make) *place = new (std::nothrow) Values;
  return *place;
}

void quantile_step(sqlite3_context* context, int count, sqlite3_value** given) {
  Values* values = values_of(context, true);
  if (values == nullptr) return sqlite3_result_error_nomem(context);
  if (count == 2) {
    const int type = sqlite3_value_numeric_type(given[1]);
    values->percent = sqlite3_value_double(given[1]);
    if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) || values->percent < 0 || values->percent > 100) {
      return sqlite3_result_error(context, "percentile(x, p): p has to be a number from 0 to 100", -1);
    }
  }
  try {
    const int type = sqlite3_value_numeric_type(given[0]);
    if (type == SQLITE_INTEGER) values->integers.push_back(sqlite3_value_int64(given[0]));
    if (type == SQLITE_FLOAT) values->reals.push_back(sqlite3_value_double(given[0]));
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
}

// Hyndman and Fan's type 7, as in statistics/statistics.h.
template <class Number>
void give_quantile(sqlite3_context* context, std::vector<Number>& numbers, double q) {
  const double place = q * static_cast<double>(numbers.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto at = numbers.begin() + static_cast<std::ptrdiff_t>(below);
  std::ranges::nth_element(numbers, at);
  const Number low = *at;
  const double part = place - static_cast<double>(below);
  const Number high = part > 0 ? *std::min_element(at + 1, numbers.end()) : low;
  if constexpr (std::is_integral_v<Number>) {
    if (low == high) return sqlite3_result_int64(context, low);
  }
  const double value = static_cast<double>(low) + part * (static_cast<double>(high) - static_cast<double>(low));
  if constexpr (std::is_integral_v<Number>) {
    // Whole results stay integers, so that they print as such.
    if (value == std::floor(value) && std::abs(value) < 0x1p53) {
      return sqlite3_result_int64(context, static_cast<sqlite3_int64>(value));
    }
  }
  sqlite3_result_double(context, value);
}

void quantile_final(sqlite3_context* context) {
  Values* values = values_of(context, false);
  if (values == nullptr) return;
  const double q = values->percent / 100;
  try {
    if (!values->reals.empty()) {
      values->reals.insert(values->reals.end(), values->integers.begin(), values->integers.end());
      give_quantile(context, values->reals, q);
    } else if (!values->integers.empty()) {
      give_quantile(context, values->integers, q);
    }
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
  delete values;
}

// Welford's method.
struct Moments {
  std::int64_t count;
  double mean, squares;
};

void stddev_step(sqlite3_context* context, int, sqlite3_value** given) {
  auto* of = static_cast<Moments*>(sqlite3_aggregate_context(context, sizeof(Moments)));
  if (of == nullptr) return sqlite3_result_error_nomem(context);
  const int type = sqlite3_value_numeric_type(given[0]);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return;
  const double value = sqlite3_value_double(given[0]), before = value - of->mean;
  of->mean += before / static_cast<double>(++of->count);
  of->squares += before * (value - of->mean);
}

void stddev_final(sqlite3_context* context) {
  const auto* of = static_cast<const Moments*>(sqlite3_aggregate_context(context, 0));
  if (of == nullptr || of->count < 2) return;
  sqlite3_result_double(context, std::sqrt(of->squares / static_cast<double>(of->count - 1)));
}

using Function = void (*)(sqlite3_context*, int, sqlite3_value**);

struct Definition {
  const char* name;
  int arguments;
  Function function, step;
  void (*final)(sqlite3_context*);
};

constexpr Definition definitions[] = {
    {"argument", 2, argument, nullptr, nullptr},
    {"phase", 1, phase, nullptr, nullptr},
    {"duration_text", 1, duration_text, nullptr, nullptr},
    {"median", 1, nullptr, quantile_step, quantile_final},
    {"percentile", 2, nullptr, quantile_step, quantile_final},
    {"stddev", 1, nullptr, stddev_step, stddev_final},
};

}  // namespace sql_functions

std::span<const QueryFunction> query_functions() { return sql_functions::descriptions; }

void add_functions(sqlite3* database, RunData& data) {
  for (const auto& of : sql_functions::definitions) {
    const int failed = sqlite3_create_function_v2(database, of.name, of.arguments, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                                  &data, of.function, of.step, of.final, nullptr);
    if (failed != SQLITE_OK) {
      throw Error(fmt::format("the function {} could not be made: {}", of.name, sqlite3_errmsg(database)));
    }
  }
}

}  // namespace paceline::analysis
