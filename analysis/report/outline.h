// SPDX-License-Identifier: Apache-2.0
// The order of a report. Every rendering writes the same parts one after the other: verdict, picture, reasons, changes
// that pay, details. The details are the tables about scaling, the remarks about them, and one part for each run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/report/render.h"
#include "analysis/report/report.h"
#include "analysis/report/section.h"

namespace paceline::analysis {

struct RunDetails {
  std::vector<Finding> findings = {};  // those that are not among the reasons
  std::vector<Table> tables = {};
  std::vector<Chart> charts = {};
};

struct Outline {
  std::optional<std::size_t> focus;  // index of the run that the picture is about (focus_of)
  std::vector<Chart> picture = {};
  std::vector<Finding> reasons = {};  // problems of all runs, then what costs most
  std::vector<Table> changes = {};
  std::vector<Finding> remarks = {};  // on the scaling figures
  std::vector<Table> tables = {};     // of the scaling figures
  std::vector<Chart> charts = {};
  std::vector<RunDetails> runs = {};  // as Report::runs
};

// `place` is Table::Place::terminal or documents. A summary has no details: the parts about scaling and runs are empty.
Outline outline_of(const Report& report, Table::Place place, Extent extent = Extent::whole);

// A finding that explains lost time, or that the reader has to act on. Others remark on the figures.
bool is_reason(const Finding& finding);

// The order of reasons: problems first, then what costs most.
bool comes_before(const Finding& a, const Finding& b);

// "1.20 s, 12.3 % of the wall time: " before a reason that has a cost; "" before others. In a report about several runs
// the name of the run stands first.
std::string reason_prefix(const Report& report, const Finding& reason);

// The first sentence of a finding, and the rest.
struct Split {
  std::string first, rest;
};
Split split_sentences(const std::string& text);

}  // namespace paceline::analysis
