// The sentences of a report: what the figures mean, in plain words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_analysis.h"
#include "analysis/text/lists.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// Fills report.headline and report.findings from everything else in the report.
void write_findings(Report& report);

// The parts of it.
void add_scaling_findings(const Report& report, std::vector<Finding>& out);
void add_run_findings(const RunReport& run, std::vector<Finding>& out);
void add_quality_findings(const RunReport& run, std::vector<Finding>& out);

// What counters and facts of the machine say: ranks that share CPUs, a low limit, GPUs in trouble. Needs the trace.
std::vector<Finding> machine_findings(const Trace& trace);

// Below this serial share the limit 1/s says nothing: it would be more ranks than any machine has.
inline constexpr double least_serial_share = 1e-3;

// The share of its time that a rank's main thread could have run but got no CPU; nothing where it was not counted.
std::optional<double> cpu_waiting_share(const Rank& rank);

// Where the seconds between T(N) and T(1)/N went, and what slowed down parallel work, as far as that was measured.
std::string lost_time_text(const Report& report, const LostTime& lost);

// Over all runs of a point that have a breakdown; nothing where none has.
std::optional<MeasuredShare> measured_serial_share(const Report& report, const ScalingPoint& point);
std::string measured_share_text(const MeasuredShare& measured);  // "0.0123 (mean of 4 runs, 0.0110–0.0140)"

// The speed-up to remember: of the fewest differences from its 1-rank run, then of the most ranks, then of the longest
// run. Null where there is none.
const ScalingPoint* headline_point(const Scaling& scaling);

// The headline of a scaling report: the speed-up to remember, else weak scaling, else the first comparison; "" where
// there is none. It says "faster" or "slower" only if the interval excludes equality.
std::string scaling_headline(const Report& report);

// "program: chainer → chainermn; batch: 32 → 64"
std::string differences_text(const std::vector<Difference>& differences);

// "4 epochs", or "10,000 images" where epochs are not known.
std::string work_text(const ScalingPoint& point);

}  // namespace paceline::analysis
