// SPDX-License-Identifier: Apache-2.0
// What the analysis of the whole run found: the figures and findings of the report, and who waited for whom in each
// collective. Computed beside the UI thread after the run is open.
#pragma once

#include <QString>
#include <optional>
#include <span>
#include <vector>

#include "analysis/report/report.h"
#include "analysis/run/finding.h"
#include "analysis/run/run_analysis.h"
#include "viewer/session/collective_index.h"
#include "viewer/session/run.h"
#include "viewer/session/time_axis.h"

namespace paceline::viewer {

// One rank's call of a collective, in which it waited for the last rank to arrive.
struct Wait {
  std::uint32_t track = 0, slice = 0;      // the call: index into Rank::tracks, and of its slices
  std::int64_t from_ns = 0, until_ns = 0;  // the wait
  std::int64_t end_ns = 0;                 // of the time blocked in it: the transfer is from until_ns to here
  std::uint32_t for_rank = 0;              // the last to arrive, as an index into Run::ranks

  std::int64_t length_ns() const { return until_ns - from_ns; }
};

// The waits of one rank, by time. They are disjoint, however many collectives are in flight (blocked_time.h).
class WaitTimeline {
 public:
  WaitTimeline() = default;
  explicit WaitTimeline(std::vector<Wait> waits);  // n log n

  // Those that touch this time. O(log n).
  std::span<const Wait> between(double from_ns, double to_ns) const;
  // How much of the time from from_ns to to_ns was waiting. O(log n).
  std::int64_t waited_ns(std::int64_t from_ns, std::int64_t to_ns) const;
  // How much of the time before time_ns was waiting. `begun` is the number of waits that begin before an earlier time,
  // 0 at first, and becomes that of this time: times that rise are found from the one before.
  std::int64_t waited_before(std::int64_t time_ns, std::size_t& begun) const;
  // The wait in this call, which starts at this time; nullptr if there is none, or if the call does not block. O(log
  // n).
  const Wait* of_call(std::size_t track, std::uint32_t slice, std::int64_t start_ns) const;

 private:
  std::vector<Wait> waits_;           // by from_ns
  std::vector<std::int64_t> sum_ns_;  // of those before
};

// Whose stacks are compared with those of the others: a rank's or an iteration's, by its number.
struct StackPlace {
  enum class Of { rank, iteration };

  Of of = Of::rank;
  std::int64_t number = 0;
  QString function = {};  // that explains the difference; may be empty
};

// A finding of the report, and where it can be seen.
struct ShownFinding {
  analysis::Severity severity = analysis::Severity::info;
  QString text, details;               // a short one for the bar, and whole sentences
  std::optional<std::size_t> rank;     // an index into Run::ranks
  std::optional<TimeRange> range;      // what the view shows
  std::optional<TimeRange> iteration;  // that becomes the selected range
  std::optional<StackPlace> stacks;    // whose samples explain it
};

struct Insight {
  analysis::RunAnalysis figures;
  QString verdict;                     // the report's sentence about how well the run does and what limits it
  std::vector<ShownFinding> findings;  // those of the report without its critical path
  std::vector<WaitTimeline> waits;     // of each rank
  CollectiveIndex collectives;
};

// The reasons of the report in its order, then what else leads to a place: one entry for each of the first places.
std::vector<ShownFinding> shown_findings(const analysis::Report& report);

// Cost: that of the report.
Insight examine(const Run& run);

}  // namespace paceline::viewer
