// SPDX-License-Identifier: Apache-2.0
// The table `arguments`: the arguments of all slices and marks, and argument values as SQLite has them.
#pragma once

#include "analysis/query/run_data.h"
#include "analysis/query/table.h"

namespace paceline::analysis {

// Gives an argument's value: integers exactly, those above 2^63 - 1 as text because SQLite has no such integers.
void give_argument(sqlite3_context* context, const Names& names, const Argument& argument);

// The slices or marks that an id belongs to, and the position in them; nullptr where there is no such id.
const Slices* find_event(const RunData& data, std::int64_t id, std::uint32_t& position);

class ArgumentTable : public QueryTable {
 public:
  explicit ArgumentTable(RunData& data);
  std::span<const QueryColumn> columns() const override;
  void plan(QueryPlan& plan) const override;
  std::unique_ptr<QueryCursor> open() override;

 private:
  RunData& data_;
  double count_ = 0;  // slices and marks
};

}  // namespace paceline::analysis
