// SPDX-License-Identifier: Apache-2.0
// The samples of a file's counters.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/importers/pace/clock.h"
#include "analysis/importers/pace/definitions.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis {

class PaceCounters {
 public:
  // Takes one sample. A counter number that no counter can have is damage, and the sample is left out.
  void sample(const format::Slot& head, Rank& info);

  // Adds a track for each counter. `process` names another process of the rank and goes in front of the device.
  void add_tracks(const PaceDefinitions& definitions, const PaceClock& clock, const std::string& process,
                  RankBuilder& rank);

 private:
  struct Reading {  // as in the file
    std::uint64_t ticks = 0, value = 0;
  };
  std::map<std::uint32_t, std::vector<Reading>> readings_;  // by counter
};

}  // namespace paceline::analysis
