// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace/thread_states.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analysis/trace/stacks.h"
#include "analysis/trace/state_cursor.h"

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

// Bursts of switches and long stretches without any, read in steps of all lengths.
TEST(StateCursor, FindsTheTimesOfEachStep) {
  std::mt19937_64 random(3);
  ThreadStates states{.time_ns = {1000}, .running_ns = {0}, .waiting_ns = {0}, .exact = true};
  while (states.size() < 5000) {
    const std::int64_t length = random() % 50 == 0 ? 10'000 : 1 + static_cast<std::int64_t>(random() % 9);
    const std::size_t state = random() % 3;
    states.time_ns.push_back(states.time_ns.back() + length);
    states.running_ns.push_back(states.running_ns.back() + (state == 0 ? length : 0));
    states.waiting_ns.push_back(states.waiting_ns.back() + (state == 1 ? length : 0));
  }
  // From the entries one by one.
  const auto running_before = [&](std::int64_t time) {
    std::int64_t sum = 0;
    for (std::size_t i = 1; i < states.size() && states.time_ns[i - 1] < time; ++i) {
      const bool ran = states.running_ns[i] > states.running_ns[i - 1];
      sum += ran ? std::min(time, states.time_ns[i]) - states.time_ns[i - 1] : 0;
    }
    return static_cast<double>(sum);
  };
  for (const std::int64_t longest : {1, 20, 3000, 200'000}) {
    std::int64_t time = 500;
    StateCursor cursor(states, time);
    for (int step = 0; step < 300; ++step) {
      const std::int64_t next = time + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest + 1));
      const CpuTimes times = cursor.until(next);
      EXPECT_NEAR(times.running_ns, running_before(next) - running_before(time), 1e-6);
      EXPECT_NEAR(times.running_ns + times.waiting_ns + times.blocked_ns, times.known_ns, 1e-6);
      time = next;
    }
  }
}

TEST(ThreadStates, EachNthEntryHasTheSameSums) {
  const ThreadStates few = each_nth(example(), 3);
  EXPECT_EQ(few.time_ns, (std::vector<std::int64_t>{100, 135, 140}));
  EXPECT_EQ(few.running_ns, (std::vector<std::int64_t>{0, 10, 15}));
  EXPECT_EQ(few.waiting_ns, (std::vector<std::int64_t>{0, 5, 5}));
  EXPECT_EQ(each_nth(example(), 4).time_ns, (std::vector<std::int64_t>{100, 140}));
  EXPECT_TRUE(each_nth({}, 3).empty());
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
