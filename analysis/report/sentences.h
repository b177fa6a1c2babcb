// SPDX-License-Identifier: Apache-2.0
// Texts and figures that several sections and the headline share, and the list that findings about scaling go into.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "analysis/report/report.h"
#include "analysis/report/section.h"

namespace paceline::analysis {

// The limit 1/s of a serial share below this would be more ranks than any machine has, so it is not printed.
inline constexpr double least_bounding_share = 1e-3;

class SentenceList {
 public:
  explicit SentenceList(std::vector<Finding>& out) : out_(out) {}

  // Adds the sentence unless it is in the list already or its kind has as many as are printed.
  void say(const char* kind, Severity severity, std::string text, std::optional<double> cost_s = {});
  void finish();

 private:
  std::vector<Finding>& out_;
  std::map<std::string, std::size_t> said_;
  std::unordered_set<std::string> texts_;
  std::size_t left_out_ = 0;
};

// " on node17"; "" where the trace does not name the host.
std::string on_host(const RankSummary& rank);
// "2 ranks"; "1 of 2 ranks" if the files of some ranks are missing.
std::string ranks_text(const RunAnalysis& run);
// The description of a run in one line: "ResNet-18 …, 2 ranks on alice, batch 32 per rank".
std::string run_summary(const RunAnalysis& run);
// How much of a run's wall time shrinks when ranks are added. The run must have a breakdown.
std::string breakdown_sentence(const RunAnalysis& run);

// "program: chainer → chainermn; batch: 32 → 64"
std::string differences_text(const std::vector<Difference>& differences);
// "4 epochs", or "10,000 images" where the epochs are not known.
std::string work_text(const ScalingPoint& point);
// The rank counts of these points: "1, 2 and 4".
std::string rank_counts_text(const Scaling& scaling, const std::vector<std::size_t>& points);
Json rank_counts_json(const Scaling& scaling, const std::vector<std::size_t>& points);
Json differences_json(const std::vector<Difference>& differences);
// Sets "verdict" to "faster", "slower" or "undecided" where it is known.
void set_verdict(Json& object, Verdict verdict);
// The name of the point's first run, and how many more it has.
std::string point_label(const Report& report, const ScalingPoint& point);

// Two points of equal rank counts beside each other, as a sentence.
std::string comparison_text(const Scaling& scaling, const Comparison& comparison);

// From this share of a main thread's time on, waits for a CPU explain a difference between runs.
inline constexpr double much_cpu_waiting = 0.05;
// That share of the runs (of Report::runs), mean over those where it was counted.
std::optional<double> mean_cpu_waiting(const Report& report, const std::vector<std::size_t>& runs);
std::optional<double> mean_cpu_waiting(const Report& report, const ScalingPoint& point);
// Whether the 1-rank runs of this point waited so much longer for a CPU that its speed-up is too high.
bool baseline_lacked_cpus(const Report& report, const ScalingPoint& many);

// The lost time of every point of N ranks that has a 1-rank point and breakdowns beside it.
std::vector<LostTime> lost_times(const Report& report);
// Where the seconds between T(N) and T(1)/N went, and what slowed down parallel work, as far as that was measured.
std::string lost_time_text(const Report& report, const LostTime& lost);

// The serial share over all runs of a point that have a breakdown; nothing where none has.
std::optional<MeasuredShare> measured_serial_share(const Report& report, const ScalingPoint& point);
// The first 1-rank point that has one.
std::optional<MeasuredShare> measured_serial_share(const Report& report);

// The speed-up of the headline: the one with the fewest differences from its 1-rank run, then with the most ranks, then
// of the longest run. nullptr where there is none.
const ScalingPoint* headline_point(const Scaling& scaling);
// The headline of a report.
std::string headline_of(const Report& report);
ReportVerdict verdict_of(const Report& report);

// The run that the verdict, the picture and the changes are about: that of the headline's speed-up, else the one with
// the most ranks. nullopt where the report has tables only.
std::optional<std::size_t> focus_of(const Report& report);

// The lost time of the headline's speed-up; nullptr where breakdowns do not give it.
const LostTime* headline_lost_time(const Report& report);

}  // namespace paceline::analysis
