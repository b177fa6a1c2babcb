// SPDX-License-Identifier: Apache-2.0
// A report as plain data: the analyses of its runs, the scaling between them, and the sentences about both. build.h
// fills it; text, Markdown, HTML, JSON and CSV are renderings of it. docs/metrics.md defines every figure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/run/finding.h"
#include "analysis/run/run_analysis.h"
#include "analysis/scaling/scaling.h"

namespace paceline::analysis {

// Why a speed-up is not N. With W the mean wall time over the ranks, W(N) − W(1)/N is exactly the sum of serial_s,
// overhead_s and slowdown_s. With repeats each figure is the mean over all of them.
struct LostTime {
  std::vector<std::size_t> one, many;  // all repeats that have a breakdown, as indices into Report::runs
  int ranks = 1;
  std::size_t point = 0;                     // that of the N ranks, as an index into the scaling's points
  double ideal_s = 0, actual_s = 0;          // W(1)/N and W(N)
  double ideal_low_s = 0, ideal_high_s = 0;  // the least and the most over the repeats
  double actual_low_s = 0, actual_high_s = 0;
  double serial_s = 0;    // serial work that does not shrink
  double overhead_s = 0;  // communication, waiting included
  double waiting_s = 0;   // the part of it that is waiting for the last rank
  double slowdown_s = 0;  // parallel work that took longer per image than on one rank; below 0 it took less
};

// The serial share that the breakdowns of equal runs measured: the mean over all repeats, and their spread.
struct MeasuredShare {
  double share = 0, low = 0, high = 0;
  std::size_t runs = 0;
  std::optional<Interval> ci95;  // of a single run, from its iterations
};

// What to remember of a report, in two sentences.
struct ReportVerdict {
  std::string state;   // how well the job runs or scales, what limits it, and which rank
  std::string change;  // what to change first, and what that brings
};

struct Report {
  std::vector<RunAnalysis> runs;                               // one for each trace, in the order given
  std::vector<ScalingRun> scaling_runs;                        // the traces first, then the rows of the tables
  std::vector<std::optional<std::size_t>> run_of_scaling_run;  // index into runs; nothing for a row of a table
  Scaling scaling;
  std::vector<LostTime> lost_time;  // one for each point of N ranks that has a 1-rank point beside it
  std::string headline;             // the most important sentence
  ReportVerdict verdict;
  std::vector<Finding> findings;  // problems first

  // The trace that a scaling run came from; nullptr for a row of a table.
  const RunAnalysis* trace_of(std::size_t scaling_run) const {
    const auto& run = run_of_scaling_run[scaling_run];
    return run ? &runs[*run] : nullptr;
  }
};

}  // namespace paceline::analysis
