// SPDX-License-Identifier: Apache-2.0
// The table `counters`: the samples of all counters.
#pragma once

#include "analysis/query/run_data.h"
#include "analysis/query/table.h"

namespace paceline::analysis {

class SampleTable : public QueryTable {
 public:
  explicit SampleTable(RunData& data);
  std::span<const QueryColumn> columns() const override;
  void plan(QueryPlan& plan) const override;
  std::unique_ptr<QueryCursor> open() override;

 private:
  RunData& data_;
  std::vector<TrackNumber> counters_;  // tracks with samples
  double count_ = 0;                   // samples
};

}  // namespace paceline::analysis
