#include "analysis/metrics/phases.h"

#include "analysis/metrics/phase_walk.h"

namespace paceline::analysis {
namespace {

constexpr std::string_view names[phase_count] = {"startup",   "preprocess",    "forward",  "backward",
                                                 "optimizer", "communication", "evaluate", "checkpoint",
                                                 "copy",      "launch",        "idle",     "other"};

}  // namespace

std::string_view phase_name(Phase phase) { return names[static_cast<std::size_t>(phase)]; }

RankPhases phases_of(const PhaseTable& table, const Rank& rank) {
  RankPhases result;
  each_phase_interval(table, rank, [&](const PhaseInterval& interval) {
    result.total_ns[static_cast<std::size_t>(interval.phase)] += interval.end_ns - interval.start_ns;
    result.intervals.push_back(interval);
  });
  return result;
}

}  // namespace paceline::analysis
