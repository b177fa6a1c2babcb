// SPDX-License-Identifier: Apache-2.0
// Evaluations and checkpoints, between iterations and inside them.
#include "analysis/phases/interludes.h"

#include <gtest/gtest.h>

#include "analysis/trace/intervals.h"

namespace paceline::analysis {
namespace {

std::vector<Iteration> iterations_at(std::initializer_list<TimeInterval> times) {
  std::vector<Iteration> iterations;
  for (const auto [start_ns, end_ns] : times) {
    Iteration& iteration = iterations.emplace_back();
    iteration.start_ns = start_ns, iteration.duration_ns = end_ns - start_ns;
  }
  return iterations;
}

std::vector<Interlude> interludes_in(const std::vector<Iteration>& iterations,
                                     std::initializer_list<PhaseInterval> intervals) {
  InterludeWalk walk(iterations);
  for (const PhaseInterval& interval : intervals) walk.add(interval);
  return walk.take();
}

void expect(const Interlude& interlude, std::int64_t start_ns, std::int64_t end_ns, Phase phase,
            std::int64_t settled_ns) {
  EXPECT_EQ(interlude.start_ns, start_ns);
  EXPECT_EQ(interlude.end_ns, end_ns);
  EXPECT_EQ(interlude.phase, phase);
  EXPECT_EQ(interlude.settled_ns, settled_ns);
}

TEST(Interludes, BatchesAreOneEvaluationUntilAnIterationOrACheckpoint) {
  const auto iterations = iterations_at({{100, 200}, {300, 400}, {600, 700}});
  const auto found = interludes_in(iterations, {{10, 20, Phase::evaluate},
                                                {110, 120, Phase::forward},
                                                {220, 230, Phase::evaluate},
                                                {230, 240, Phase::preprocess},
                                                {240, 250, Phase::evaluate},
                                                {410, 420, Phase::evaluate},
                                                {440, 490, Phase::checkpoint},
                                                {610, 620, Phase::evaluate},
                                                {640, 650, Phase::evaluate},
                                                {720, 730, Phase::checkpoint}});
  ASSERT_EQ(found.size(), 6U);
  expect(found[0], 10, 20, Phase::evaluate, 100);
  expect(found[1], 200, 250, Phase::evaluate, 300);
  expect(found[2], 400, 420, Phase::evaluate, 440);
  expect(found[3], 440, 490, Phase::checkpoint, 600);
  expect(found[4], 610, 650, Phase::evaluate, 650);
  expect(found[5], 700, 730, Phase::checkpoint, 730);
  EXPECT_EQ(interlude_ns(found, iterations, iterations[0], Phase::evaluate), 0);
  EXPECT_EQ(interlude_ns(found, iterations, iterations[1], Phase::evaluate), 50);
  EXPECT_EQ(interlude_ns(found, iterations, iterations[2], Phase::evaluate), 20);
  EXPECT_EQ(interlude_ns(found, iterations, iterations[2], Phase::checkpoint), 50);
}

}  // namespace
}  // namespace paceline::analysis
