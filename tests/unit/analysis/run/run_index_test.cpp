// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/index/run_index.h"

#include <gtest/gtest.h>

#include "analysis/trace/builder.h"
#include "tests/unit/analysis/rank_phases.h"

namespace paceline::analysis {
namespace {

// Iterations of forward and backward, each with `layers` slices without a phase of their own.
Trace job(int layers) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0, 1).add_main_thread();
  std::int64_t now = 0;
  for (int i = 0; i < 10; ++i) {
    main.push(now, "iteration", "paceline.trainer", "iteration");
    main.argument("payload", i);
    for (const char* phase : {"forward", "backward"}) {
      main.push(now, phase, "paceline.trainer", phase);
      for (int layer = 0; layer < layers; ++layer, now += 10) main.add_slice(now, now + 10, "layer", "", "");
      now += 5;
      main.pop(now);
    }
    main.pop(now);
  }
  return run.finish();
}

// Few intervals are kept after the first walk, and many are not.
TEST(RunIndex, EachWalkOverThePhasesIsTheSame) {
  for (const int layers : {1, 100}) {
    const Trace trace = job(layers);
    const RunIndex index(trace);
    const std::vector<PhaseInterval> expected = phases_of(index.phases(), trace.ranks[0]).intervals;
    ASSERT_EQ(expected.size(), 20U);
    for (int walk = 0; walk < 2; ++walk) {
      std::size_t next = 0;
      index.each_phase_interval(0, [&](const PhaseInterval& interval) {
        ASSERT_LT(next, expected.size());
        EXPECT_EQ(interval.start_ns, expected[next].start_ns);
        EXPECT_EQ(interval.end_ns, expected[next].end_ns);
        EXPECT_EQ(interval.phase, expected[next].phase);
        ++next;
      });
      EXPECT_EQ(next, expected.size()) << layers;
    }
  }
}

}  // namespace
}  // namespace paceline::analysis
