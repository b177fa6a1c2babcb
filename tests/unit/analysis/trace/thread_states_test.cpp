// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace/thread_states.h"

#include <gtest/gtest.h>

#include "analysis/trace/stacks.h"

namespace paceline::analysis {
namespace {

// Runs for 10 ns, is blocked for 20, waits for a CPU for 5, and runs again for 5.
ThreadStates example() { return {{100, 110, 130, 135, 140}, {0, 10, 10, 10, 15}, {0, 0, 0, 5, 5}, true}; }

TEST(ThreadStates, TimesOfAStretch) {
  const CpuTimes all = cpu_times(example(), 0, 1000);
  EXPECT_EQ(all.known_ns, 40);
  EXPECT_EQ(all.running_ns, 15);
  EXPECT_EQ(all.waiting_ns, 5);
  EXPECT_EQ(all.blocked_ns, 20);
  const CpuTimes middle = cpu_times(example(), 105, 132);
  EXPECT_EQ(middle.known_ns, 27);
  EXPECT_EQ(middle.running_ns, 5);
  EXPECT_EQ(middle.waiting_ns, 2);
  EXPECT_EQ(middle.blocked_ns, 20);
}

TEST(ThreadStates, NothingIsKnownOutside) {
  EXPECT_EQ(cpu_times(example(), 0, 100).known_ns, 0);
  EXPECT_EQ(cpu_times(example(), 140, 150).known_ns, 0);
  EXPECT_EQ(cpu_times(example(), 120, 120).known_ns, 0);
  EXPECT_EQ(cpu_times({}, 0, 100).known_ns, 0);
}

TEST(Stacks, EqualStacksAreStoredOnce) {
  Stacks stacks;
  const FrameId outer = stacks.frame({1, 2, 3}), inner = stacks.frame({4, 2, 9});
  EXPECT_EQ(stacks.frame({1, 2, 3}), outer);
  EXPECT_NE(stacks.frame({1, 2, 4}), outer);
  const StackId main = stacks.stack(0, outer), both = stacks.stack(main, inner);
  EXPECT_EQ(stacks.stack(stacks.stack(0, outer), inner), both);
  EXPECT_EQ(stacks.caller(both), main);
  EXPECT_EQ(stacks.innermost(both), inner);
  EXPECT_EQ(stacks[stacks.innermost(main)].line, 3u);
  EXPECT_EQ(stacks.size(), 3u);
}

}  // namespace
}  // namespace paceline::analysis
