// The sentences of a report: what the figures mean, in plain words.
#pragma once

#include <string>
#include <vector>

#include "analysis/report/model.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// Fills report.headline and report.findings from everything else in the report.
void write_findings(Report& report);

// The parts of it.
void add_scaling_findings(const Report& report, std::vector<Finding>& out);
void add_run_findings(const RunReport& run, std::vector<Finding>& out);

// What counters and facts of the machine say: ranks that share CPUs, a low limit, GPUs in trouble. Needs the trace.
std::vector<Finding> machine_findings(const Trace& trace);

// The speed-up to remember: of the fewest differences from its 1-rank run, then of the most ranks, then of the longest
// run. Null where there is none.
const ScalingPoint* headline_point(const Scaling& scaling);

// "program: chainer → chainermn; batch: 32 → 64"
std::string differences_text(const std::vector<Difference>& differences);

// "4 epochs", or "10,000 images" where epochs are not known.
std::string work_text(const ScalingPoint& point);

// "1, 2 and 4"
std::string list_text(const std::vector<std::string>& items);

}  // namespace paceline::analysis
