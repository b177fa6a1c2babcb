// SPDX-License-Identifier: Apache-2.0
// What holds of the causes of every run: no part is below 0, and the parts add up to what was lost.
#pragma once

#include <gtest/gtest.h>

#include "analysis/run/run_analysis.h"

namespace paceline::analysis {

inline void expect_parts_of(const LossParts& parts, double lost_ns, const char* what) {
  for (std::size_t i = 0; i < loss_cause_count; ++i) {
    EXPECT_GE(parts.ns[i], -1) << what << ", " << loss_cause_key(static_cast<LossCause>(i));
  }
  EXPECT_NEAR(parts.sum(), lost_ns, 10 + 1e-6 * lost_ns) << what;
}

inline void expect_causes_add_up(const RunAnalysis& run) {
  if (!run.causes) return;
  ASSERT_EQ(run.causes->ranks.size(), run.waits.size());
  for (std::size_t r = 0; r < run.waits.size(); ++r) {
    const RankCauses& rank = run.causes->ranks[r];
    const RankWaits& waits = run.waits[r];
    expect_parts_of(rank.waiting, static_cast<double>(waits.waited_ns), "waiting");
    expect_parts_of(rank.transfer, static_cast<double>(waits.blocked_ns - waits.waited_ns), "transfer");
    expect_parts_of(rank.caused, static_cast<double>(waits.caused_ns), "caused");
    expect_parts_of(rank.own, rank.own[LossCause::no_cpu] + rank.own[LossCause::throttled], "own work");
  }
  for (const IterationCauses& iteration : run.causes->iterations) {
    expect_parts_of(iteration.parts, iteration.parts.sum(), "an iteration");
    EXPECT_LE(iteration.computing_longer_ns, iteration.parts[LossCause::computing] + 1);
  }
  for (const auto* longer : {&run.causes->slow, &run.causes->changed}) {
    if (*longer) expect_parts_of((*longer)->parts, (*longer)->excess_ns, "longer iterations");
  }
}

}  // namespace paceline::analysis
