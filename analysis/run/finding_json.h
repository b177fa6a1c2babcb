// SPDX-License-Identifier: Apache-2.0
// A finding as JSON, the same in a report and in `paceline watch`.
#pragma once

#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/run/finding.h"

namespace paceline::analysis {

// `rank_number(index)` gives the number of a rank.
template <class RankNumber>
nlohmann::ordered_json finding_json(const Finding& finding, RankNumber&& rank_number) {
  nlohmann::ordered_json out = {{"severity", severity_name(finding.severity)}, {"text", finding.text}};
  if (!finding.kind.empty()) out["kind"] = finding.kind;
  if (finding.cost_s) out["cost_s"] = *finding.cost_s;
  for (const FindingPlace& place : finding.places) {
    nlohmann::ordered_json& entry = out["places"].emplace_back(nlohmann::ordered_json::object());
    if (!place.name.empty()) entry["name"] = place.name;
    if (place.rank) entry["rank"] = rank_number(*place.rank);
    if (place.iteration) entry["iteration"] = *place.iteration;
    if (place.time) entry["start_ns"] = place.time->start_ns, entry["end_ns"] = place.time->end_ns;
  }
  return out;
}

}  // namespace paceline::analysis
