// SPDX-License-Identifier: Apache-2.0
// Many runs of one job beside each other: the time of a step, its efficiency and where its time went, by commit or
// date.
//
// A row is made from the JSON of a report, so that CI can keep the small reports and throw the traces away.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/report/section.h"

namespace paceline::analysis {

struct HistoryRow {
  std::string run;         // the last part of its path
  std::string recorded;    // "2026-11-22T10:04:05Z"; "" where it is not known
  std::string label = {};  // what the page calls it; set by history_of()
  int ranks = 0;
  double step_ms = 0, p95_ms = 0;                                   // the median after the warm-up; of all iterations
  std::optional<double> images_per_s = {}, useful = {};             // useful work, 0 to 1
  std::vector<std::pair<std::string, double>> phases_ms = {};       // of a step after the warm-up, mean over the ranks
  std::vector<std::pair<std::string, double>> causes_percent = {};  // of the wall time that a rank lost, by cause
  std::map<std::string, std::string> config = {};                   // the description of the run
};

struct History {
  std::vector<HistoryRow> rows;  // the oldest first, where all have a date; else in the order given
  std::string by;                // what the labels are: "commit", "recorded", "run"
};

// The rows of a report (paceline.report/1). Runs without iterations have none; their names are added to `without`.
// Throws Error, with the name of the file in front, where the JSON is none of a report.
std::vector<HistoryRow> history_rows(const Json& report, const std::string& file, std::vector<std::string>& without);

// `by` is a key of the runs' descriptions, or "" for "commit" where a run has it, else the date. Throws Error where
// there are no rows, and where no run has the key.
History history_of(std::vector<HistoryRow> rows, const std::string& by);

std::string render_history_text(const History& history);
std::string render_history_markdown(const History& history);
std::string render_history_html(const History& history);  // one file, with charts

}  // namespace paceline::analysis
