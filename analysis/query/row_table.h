// SPDX-License-Identifier: Apache-2.0
// Tables whose rows have numbers from 0 on: ranks, iterations, collective calls, messages. Each column is a function of
// the row's number.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/query/table.h"

namespace paceline::analysis {

// A value; a text stays where it is as long as the table.
using QueryCell = std::variant<std::monostate, std::int64_t, double, std::string_view>;

// How rows are found by a column of integers.
enum class Lookup {
  none,
  ascending,  // the values never fall from row to row
  index       // by an index that is made on first use: 4 bytes for each row
};

struct RowColumn {
  QueryColumn about;
  std::function<QueryCell(std::size_t row)> cell;
  Lookup lookup = Lookup::none;
  double different = 1;  // estimate of the number of different values, as a share of the rows
};

class RowTable : public QueryTable {
 public:
  // `count` is called when a statement first reads the table, and computes what the columns need. `estimate` is the
  // number of rows as far as it is known before.
  RowTable(const char* name, const char* meaning, std::vector<RowColumn> columns, std::function<std::size_t()> count,
           double estimate);

  std::span<const QueryColumn> columns() const override { return about_; }
  void plan(QueryPlan& plan) const override;
  std::unique_ptr<QueryCursor> open() override;

 private:
  friend class RowCursor;
  // The rows in the order of this column's values, those without an integer left out.
  const std::vector<std::uint32_t>& index(std::size_t column);

  std::vector<RowColumn> columns_;
  std::vector<QueryColumn> about_;
  std::function<std::size_t()> count_;
  double estimate_;
  std::vector<std::vector<std::uint32_t>> indexes_;  // by column
};

}  // namespace paceline::analysis
