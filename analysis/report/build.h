// From traces and tables of runs to a report.
//
//   const Report report = build_report({report_run(load_run("ranks-1"), "ranks-1")}, read_runs_table("runs.csv"));
#pragma once

#include <string>
#include <vector>

#include "analysis/run/run_analysis.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// One run's figures. `path` is what the user named it. Never fails: what a trace lacks is absent from the report.
RunReport report_run(const Trace& trace, const std::string& path);

// Puts runs and the tables' rows beside each other, computes the scaling section and writes the findings.
Report build_report(std::vector<RunReport> runs, std::vector<ScalingRun> rows = {}, const ScalingOptions& options = {});

}  // namespace paceline::analysis
