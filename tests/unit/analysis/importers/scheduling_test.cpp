// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/scheduling.h"

#include <gmock/gmock.h>

#include <cstring>
#include <vector>

#include "analysis/importers/pace/threads.h"

namespace paceline::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using enum ThreadActivity;

ThreadStates states_of(const std::vector<ThreadSwitch>& switches, const std::vector<ThreadReading>& readings) {
  return thread_states_of(switches, readings);
}

TEST(Scheduling, SwitchesGiveTheStates) {
  const ThreadStates states =
      states_of({{100, running}, {150, waiting}, {170, running}, {200, blocked}, {300, running}, {310, ended}}, {});
  EXPECT_THAT(states.time_ns, ElementsAre(100, 150, 170, 200, 300, 310));
  EXPECT_THAT(states.running_ns, ElementsAre(0, 50, 50, 80, 80, 90));
  EXPECT_THAT(states.waiting_ns, ElementsAre(0, 0, 20, 20, 20, 20));
  EXPECT_TRUE(states.exact);
}

// The system counted 60 ns of waits, 20 of them after the thread lost its CPU. The rest came after it was woken.
TEST(Scheduling, WaitsAfterWakeUpsAreTheRestOfTheSumAtTheEndsOfBlockedStretches) {
  const ThreadStates states = states_of(
      {{0, running}, {100, waiting}, {120, running}, {200, blocked}, {300, running}, {400, blocked}, {700, running}},
      {{0, 1000, 500}, {800, 1380, 560}});
  EXPECT_THAT(states.time_ns, ElementsAre(0, 100, 120, 200, 290, 300, 400, 670, 700, 800));
  EXPECT_EQ(states.running_ns.back(), 380);
  EXPECT_EQ(states.waiting_ns.back(), 60);
  EXPECT_THAT(states.waiting_ns, ElementsAre(0, 0, 20, 20, 20, 30, 30, 30, 60, 60));
}

// A block of 300 ms is not more likely to have ended with a wait than one of 8 ms.
TEST(Scheduling, LongBlocksDoNotTakeTheWaitsOfOthers) {
  constexpr std::int64_t ms = 1'000'000;
  const ThreadStates states =
      states_of({{0, running}, {10 * ms, blocked}, {310 * ms, running}, {320 * ms, blocked}, {328 * ms, running}},
                {{0, 0, 0}, {330 * ms, 22 * ms, 8 * ms}});
  EXPECT_THAT(states.waiting_ns, ElementsAre(0, 0, 0, 4 * ms, 4 * ms, 4 * ms, 8 * ms, 8 * ms));
  // More than that is shared in proportion to all lengths.
  const ThreadStates starved =
      states_of({{0, running}, {10 * ms, blocked}, {310 * ms, running}, {320 * ms, blocked}, {330 * ms, running}},
                {{0, 0, 0}, {340 * ms, 30 * ms, 62 * ms}});
  EXPECT_THAT(starved.waiting_ns, ElementsAre(0, 0, 0, 60 * ms, 60 * ms, 60 * ms, 62 * ms, 62 * ms));
}

// The thread has the virtual CPU for 40 ms, and the kernel counted 30 ms: the host took 10 ms of them.
TEST(Scheduling, TimeThatTheHostTookIsAWait) {
  constexpr std::int64_t ms = 1'000'000;
  const ThreadStates states =
      states_of({{0, running}, {80 * ms, blocked}, {90 * ms, running}},
                {{0, 0, 0}, {20 * ms, 20 * ms, 0}, {60 * ms, 50 * ms, 0}, {100 * ms, 80 * ms, 0}});
  EXPECT_THAT(states.time_ns, ElementsAre(0, 20 * ms, 60 * ms, 80 * ms, 90 * ms, 100 * ms));
  EXPECT_THAT(states.running_ns, ElementsAre(0, 20 * ms, 50 * ms, 70 * ms, 70 * ms, 80 * ms));
  EXPECT_THAT(states.waiting_ns, ElementsAre(0, 0, 10 * ms, 10 * ms, 10 * ms, 10 * ms));
}

// A wait that lasts over a reading counts in the stretch in which it ends, with its whole length.
TEST(Scheduling, AWaitOverSeveralReadingsIsNotCountedTwice) {
  const ThreadStates states = states_of({{0, running}, {10, waiting}, {90, running}, {95, blocked}, {99, running}},
                                        {{0, 0, 0}, {50, 10, 0}, {100, 16, 80}});
  EXPECT_EQ(states.waiting_ns.back(), 80);
  EXPECT_EQ(states.running_ns.back(), 16);
}

TEST(Scheduling, SumsAloneGiveShares) {
  const ThreadStates states = states_of({}, {{100, 7, 3}, {200, 57, 23}, {300, 157, 23}});
  EXPECT_THAT(states.time_ns, ElementsAre(100, 200, 300));
  EXPECT_THAT(states.running_ns, ElementsAre(0, 50, 150));
  EXPECT_THAT(states.waiting_ns, ElementsAre(0, 20, 20));
  EXPECT_FALSE(states.exact);
}

// The third reading has the waits of an earlier moment.
TEST(Scheduling, AWaitThatAReadingDoesNotHaveYetIsNotCountedTwice) {
  const ThreadStates states = states_of({}, {{0, 0, 0}, {100, 50, 30}, {200, 140, 0}, {300, 200, 40}});
  EXPECT_THAT(states.running_ns, ElementsAre(0, 50, 140, 200));
  EXPECT_THAT(states.waiting_ns, ElementsAre(0, 30, 30, 40));
}

TEST(Scheduling, AWaitThatIsLongerThanTheStretchReachesBack) {
  const ThreadStates states = states_of({}, {{0, 0, 0}, {100, 100, 0}, {200, 100, 0}, {300, 100, 0}, {400, 120, 250}});
  EXPECT_THAT(states.waiting_ns, ElementsAre(0, 0, 70, 170, 250));
  EXPECT_THAT(states.running_ns, ElementsAre(0, 100, 100, 100, 120));
}

TEST(Scheduling, SumsCoverTheTimeInWhichSwitchesAreNotKnown) {
  const ThreadStates states =
      states_of({{100, running}, {150, blocked}, {200, unknown}}, {{100, 0, 0}, {200, 50, 0}, {300, 110, 30}});
  EXPECT_THAT(states.time_ns, ElementsAre(100, 150, 200, 300));
  EXPECT_THAT(states.running_ns, ElementsAre(0, 50, 50, 110));
  EXPECT_THAT(states.waiting_ns, ElementsAre(0, 0, 0, 30));
  EXPECT_FALSE(states.exact);
}

TEST(Scheduling, ThreadsThatNeverSwitchedHaveTheirFirstStateFromTheSums) {
  // It was blocked when it was found, and its first switch is that onto a CPU.
  const ThreadStates states = states_of({{900, running}}, {{0, 5, 5}, {1000, 105, 5}});
  EXPECT_THAT(states.time_ns, ElementsAre(0, 900, 1000));
  EXPECT_THAT(states.running_ns, ElementsAre(0, 0, 100));
  EXPECT_THAT(states.waiting_ns, ElementsAre(0, 0, 0));
  EXPECT_THAT(states_of({}, {{5, 1, 1}}).time_ns, IsEmpty());
  EXPECT_THAT(states_of({}, {}).time_ns, IsEmpty());
}

// Whatever a file holds, the sums rise, and not faster than the time.
// Four processes of one program were seen at two looks; the recorder wrote one after the other.
TEST(Scheduling, ProcessesOfOneProgramAddUp) {
  namespace events = format::events;
  PaceThreads threads;
  const auto look = [&](std::uint64_t end, std::uint64_t interval_ns, std::initializer_list<std::uint64_t> uses_ns) {
    for (const std::uint64_t cpu_ns : uses_ns) {
      events::OtherProgram other{.cpu_ns = cpu_ns, .interval_ns = interval_ns};
      std::strcpy(other.name, "compiler");
      threads.event(format::pack(end, other).front());
      end += 10;
    }
  };
  look(2000, 1000, {500, 250, 250, 500});
  look(5000, 1500, {300, 300});
  TraceBuilder run;
  const PiecewiseLine line;
  threads.add_counters(PaceClock(line, 0), run.add_rank(0, 1));
  const Trace trace = run.finish();
  const Samples& samples = trace.ranks.at(0).tracks.at(0).samples;
  EXPECT_THAT(samples.time_ns, ElementsAre(1000, 2000, 3500, 5000));
  EXPECT_THAT(samples.value, ElementsAre(1.5, 0, 0.4, 0));
}

TEST(Scheduling, SumsOfADamagedFileStayWithinTheTime) {
  const ThreadStates states = states_of({{10, waiting}, {10, running}, {40, blocked}, {60, running}},
                                        {{0, 900, 900}, {20, 5, 1'000'000}, {100, 5'000'000'000'000'000'000, 3}});
  ASSERT_GE(states.size(), 2u);
  for (std::size_t i = 1; i < states.size(); ++i) {
    EXPECT_GT(states.time_ns[i], states.time_ns[i - 1]);
    EXPECT_GE(states.running_ns[i], states.running_ns[i - 1]);
    EXPECT_GE(states.waiting_ns[i], states.waiting_ns[i - 1]);
    EXPECT_LE(states.running_ns[i] - states.running_ns[i - 1] + states.waiting_ns[i] - states.waiting_ns[i - 1],
              states.time_ns[i] - states.time_ns[i - 1]);
  }
}

}  // namespace
}  // namespace paceline::analysis
