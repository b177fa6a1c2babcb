// SPDX-License-Identifier: Apache-2.0
// The results of queries, as tests compare them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "analysis/query/query.h"

namespace paceline::analysis {

using QueryRow = std::vector<std::string>;

// Values as text, with their types apart: 1, 1.0, 'text', NULL.
class CollectedRows : public QuerySink {
 public:
  void begin(std::vector<std::string> names) override { columns = std::move(names); }
  void row(std::span<const QueryValue> values) override {
    QueryRow cells;
    for (const QueryValue& value : values) cells.push_back(text_of(value));
    rows.push_back(std::move(cells));
  }
  void end() override { ended = true; }

  std::vector<std::string> columns;
  std::vector<QueryRow> rows;
  bool ended = false;

 private:
  static std::string text_of(const QueryValue& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
    if (const auto* real = std::get_if<double>(&value)) return fmt::format("{:.12e}", *real);
    if (const auto* text = std::get_if<std::string_view>(&value)) return fmt::format("'{}'", *text);
    return std::holds_alternative<std::monostate>(value) ? "NULL" : "bytes";
  }
};

inline std::vector<QueryRow> rows_of(QueryRunner& runner, const std::string& sql) {
  CollectedRows result;
  runner.run(sql, result);
  return result.rows;
}
inline std::vector<QueryRow> rows_of(const Trace& trace, const std::string& sql) {
  QueryRunner runner(trace);
  return rows_of(runner, sql);
}

}  // namespace paceline::analysis
