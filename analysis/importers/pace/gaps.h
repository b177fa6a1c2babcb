// SPDX-License-Identifier: Apache-2.0
// The times that a .pace file does not cover: pauses of the recording, and parts that a flight recorder dropped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/importers/pace/definitions.h"

namespace paceline::analysis {

struct PaceGap {
  std::uint64_t off = 0, on = 0;  // ticks, relative as in events; off = 0: from the start of the process
  bool paused = false;            // only the ends of MPI calls were recorded
  bool incomplete = false;        // a flight recorder: events may be missing
  std::string reason;
};

// Sorted and disjoint. The `on` of a gap that lasts to the end is `last_ticks`. `kept_from` is the header's.
std::vector<PaceGap> gaps_of(const PaceDefinitions& definitions, std::uint64_t kept_from);

// Sorts the gaps and merges those that overlap or touch.
void join_gaps(std::vector<PaceGap>& gaps);

// A format::DropCause, or format::lost_by_damage, as the model names it: "no_free_chunk".
std::string lost_cause_text(std::uint32_t cause);

// "signal 12", "slow iteration 40", "hang of 30 s"
std::string trigger_text(const PaceDefinitions::TriggerEvent& trigger);

}  // namespace paceline::analysis
