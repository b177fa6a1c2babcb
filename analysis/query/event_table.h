// SPDX-License-Identifier: Apache-2.0
// The tables `slices` and `marks`: cursors over the columns of the tracks.
//
// Conditions on id, rank, track, kind, name, domain, category, depth and times choose the tracks and the stretches of
// their columns that are walked; everything else is left to SQLite. Rows come rank after rank, track after track, in
// the order of their starts, or as ORDER BY start_ns, GROUP BY kind and the like want them, so that SQLite need not
// sort.
#pragma once

#include "analysis/query/run_data.h"
#include "analysis/query/table.h"

namespace paceline::analysis {

class EventTable : public QueryTable {
 public:
  enum class Events { slices, marks };
  EventTable(RunData& data, Events events);

  std::span<const QueryColumn> columns() const override { return columns_; }
  void plan(QueryPlan& plan) const override;
  std::unique_ptr<QueryCursor> open() override;

 private:
  RunData& data_;
  const Events events_;
  std::vector<QueryColumn> columns_;
  std::vector<int> fields_;  // by column: an EventField
  double count_ = 0;         // rows
};

}  // namespace paceline::analysis
