// SPDX-License-Identifier: Apache-2.0
// The links of a run, and their rated speeds.
#pragma once

#include <optional>
#include <vector>

#include "analysis/communication/link_rates.h"
#include "analysis/run/run_analysis.h"

namespace paceline::analysis {

// One entry for each rank of RunAnalysis::per_rank. It points into the run's facts, so the run must outlive it.
std::vector<LinkEnd> link_ends(const RunAnalysis& run);

// The rated speed of the link that limits a collective. Nothing where it is not known, and for collectives of some
// ranks only of a run on several hosts, because the row does not name them. The number `link_gbit` of the run's
// description takes precedence.
std::optional<LinkRate> rated_link_of(const RunAnalysis& run, const CollectiveRow& row);

// Fills what messages show of the links: RunAnalysis::link_times, and more entries of link_uses. Cost: n log n in the
// messages.
void add_links(const Messages& messages, RunAnalysis& run);

}  // namespace paceline::analysis
