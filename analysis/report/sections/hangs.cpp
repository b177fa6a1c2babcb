// SPDX-License-Identifier: Apache-2.0
// Collectives that some ranks never entered, and ranks that did not end by themselves.
#include <algorithm>

#include "analysis/report/sections.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace hangs_section {

// Where the first rank is that never entered it, while others wait.
FindingPlace place_of(const RunAnalysis& run, const Hang& hang) {
  FindingPlace place;
  if (hang.waiting.empty()) return place;
  const Hang::Waiting& first = *std::ranges::min_element(hang.waiting, {}, &Hang::Waiting::since_ns);
  const int rank = hang.missing.empty() ? first.rank : hang.missing.front().rank;
  const auto found = std::ranges::find(run.per_rank, rank, &RankSummary::rank);
  if (found != run.per_rank.end()) place.rank = static_cast<std::size_t>(found - run.per_rank.begin());
  place.time = TimeInterval{first.since_ns, first.until_ns};
  return place;
}

// The last moments of the rank that ended first, of those whose process did not come to its end, or else failed.
std::vector<FindingPlace> first_end(const RunAnalysis& run) {
  constexpr std::int64_t shown_ns = 100'000'000;
  for (const bool sudden : {true, false}) {
    const RankSummary* first = nullptr;
    for (const RankSummary& rank : run.per_rank) {
      const bool counts = sudden ? !rank.ended : !failure_of(rank).empty();
      if (counts && (first == nullptr || rank.end_ns < first->end_ns)) first = &rank;
    }
    if (first == nullptr) continue;
    return {{.rank = static_cast<std::size_t>(first - run.per_rank.data()),
             .time = TimeInterval{std::max<std::int64_t>(0, first->end_ns - shown_ns), first->end_ns}}};
  }
  return {};
}

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  for (const Hang& hang : run.hangs) {
    out.push_back(
        {.severity = Severity::problem, .text = hang_text(hang), .kind = "hang", .places = {place_of(run, hang)}});
  }
  if (!run.hang_stacks.empty()) out.push_back({.severity = Severity::problem, .text = run.hang_stacks, .kind = "hang"});
  std::string text = sudden_ends_text(run.per_rank);
  if (text.empty()) return;
  text += " The run is left out of the scaling section";
  if (const std::size_t finished = run.iterations.count; finished > 0) {
    const std::string iterations = plural(finished, "iteration", "iterations");
    text += run.images ? fmt::format("; its images are those of the {} that all ranks finished", iterations)
                       : fmt::format("; all ranks finished {}", iterations);
  }
  out.push_back({.severity = Severity::problem, .text = text + ".", .places = first_end(run)});
}

void figures(const RunAnalysis& run, Json& out) {
  out["ended"] = run.ended;
  for (const Hang& hang : run.hangs) out["hangs"].push_back(hang_text(hang));
  if (!run.hang_stacks.empty()) out["hang_stacks"] = run.hang_stacks;
}

}  // namespace hangs_section

RunSection sections::hangs() { return {.findings = hangs_section::findings, .figures = hangs_section::figures}; }

}  // namespace paceline::analysis
