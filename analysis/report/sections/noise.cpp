// SPDX-License-Identifier: Apache-2.0
// What the intervals rest on, and why there are none.
#include <set>

#include "analysis/report/sections.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace noise_section {

std::set<std::size_t> compared_points(const Scaling& scaling) {
  std::set<std::size_t> compared;
  for (std::size_t p = 0; p < scaling.points.size(); ++p) {
    const auto& point = scaling.points[p];
    if (point.karp_flatt) compared.insert({p, *point.baseline});
    if (point.weak_baseline) compared.insert({p, *point.weak_baseline});
  }
  for (const auto& comparison : scaling.comparisons) compared.insert({comparison.reference, comparison.other});
  for (const auto& row : scaling.time_model) compared.insert(row.points.begin(), row.points.end());
  return compared;
}

// The rank counts of the compared points whose spread comes from this source; "" where there are none.
std::string ranks_with(const Scaling& scaling, const std::set<std::size_t>& compared, SpreadSource source) {
  std::vector<std::size_t> which;
  for (const std::size_t p : compared) {
    if (scaling.points[p].spread.source == source) which.push_back(p);
  }
  const std::string ranks = rank_counts_text(scaling, which);
  return ranks.empty() ? "" : ranks == "1" ? "1 rank" : ranks + " ranks";
}

struct Reason {
  SpreadSource source;
  const char* text;  // with a place for the ranks
};
constexpr Reason reasons[] = {
    {SpreadSource::none,
     "There is one run of {} whose iterations are not known, so no intervals can be given. Repeat the runs (three or "
     "more equal rows give intervals), record them, or give their noise with --noise PERCENT."},
    {SpreadSource::two_repeats, "There are two runs of {}, which are too few for an interval. Three or more give one."},
    {SpreadSource::equal_repeats,
     "The repeats of {} are equal to the last digit. That shows rounding and no noise, so no interval is given."},
    {SpreadSource::few_iterations,
     "The run of {} is shorter than 20 autocorrelation times of its iterations, so no interval is given. Train longer, "
     "or repeat the run three times."},
    {SpreadSource::iterations,
     "The intervals of {} come from the iterations of one run. They cover the variation within the run, but not the "
     "spread between runs. Repeat each run three times to include that."},
    {SpreadSource::given, "The intervals of {} rest on the noise that was given."},
};

void findings(const Report& report, SentenceList& out) {
  const Scaling& scaling = report.scaling;
  const auto compared = compared_points(scaling);
  const auto ranks_from = [&](SpreadSource source) { return ranks_with(scaling, compared, source); };
  for (const Reason& reason : reasons) {
    const std::string ranks = ranks_from(reason.source);
    if (!ranks.empty()) out.say("noise", Severity::info, fmt::format(fmt::runtime(reason.text), ranks));
  }
  const bool within = !ranks_from(SpreadSource::iterations).empty();
  const bool between = !ranks_from(SpreadSource::repeats).empty() || !ranks_from(SpreadSource::given).empty();
  if (within && between) {
    out.say("noise", Severity::info,
            "There is no interval between runs with repeats and runs without. Repeat the others as well.");
  }
}

}  // namespace noise_section

ScalingSection sections::noise() { return {.findings = noise_section::findings}; }

}  // namespace paceline::analysis
