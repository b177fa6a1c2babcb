// SPDX-License-Identifier: Apache-2.0
// From the analyses of runs and tables of runs to a report.
//
//   const Report report = build_report({analyse_run(load_run("ranks-1"), "ranks-1")}, read_runs_table("runs.csv"));
#pragma once

#include <vector>

#include "analysis/report/report.h"

namespace paceline::analysis {

// Puts runs and the rows of tables beside each other, computes the scaling between them and writes the findings.
Report build_report(std::vector<RunAnalysis> runs, std::vector<ScalingRun> rows = {},
                    const ScalingOptions& options = {});

}  // namespace paceline::analysis
