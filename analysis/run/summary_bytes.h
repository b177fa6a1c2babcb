// SPDX-License-Identifier: Apache-2.0
// Summaries of ranks as bytes, so that another process of the same program can go on with them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/run/rank_summary.h"

namespace paceline::analysis {

struct SharedSummaries {
  std::vector<std::string> notes;  // what was left out of these ranks, one line each
  std::vector<RankSummary> summaries;
};

// The notes and summaries as bytes. Only the same build of Paceline can read them back. Linear in the summaries.
std::string bytes_of(std::vector<std::string>& notes, std::vector<RankSummary>& summaries);

// Throws Error where these are not the bytes of summaries, or are those of another build.
SharedSummaries summaries_from(std::string_view bytes);

}  // namespace paceline::analysis
