// SPDX-License-Identifier: Apache-2.0
// Schedules against the tables of the papers, and in a simulation without MPI that tracks each rank's contributions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <tuple>
#include <vector>

#include "trainer/comm/halving_doubling.h"
#include "trainer/comm/ring_schedule.h"

namespace paceline::train {

void PrintTo(const HalvingDoublingStep& step, std::ostream* out) {
  *out << "partner " << step.partner << " send [" << step.send.first << ", " << step.send.last << ") receive ["
       << step.receive.first << ", " << step.receive.last << ")" << (step.add ? " add" : "");
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Range = HalvingDoublingStep::Range;

// Patarasuk & Yuan, figures 2 and 3: four processes.
TEST(RingSchedule, IsThatOfThePaperForFour) {
  EXPECT_THAT(ring_schedule(0, 4), ElementsAre(RingStep{0, 3, true}, RingStep{3, 2, true}, RingStep{2, 1, true},
                                               RingStep{1, 0, false}, RingStep{0, 3, false}, RingStep{3, 2, false}));
  EXPECT_THAT(ring_schedule(3, 4), ElementsAre(RingStep{3, 2, true}, RingStep{2, 1, true}, RingStep{1, 0, true},
                                               RingStep{0, 3, false}, RingStep{3, 2, false}, RingStep{2, 1, false}));
}

TEST(RingSchedule, SendsTheChunkOfTheStepBefore) {
  for (int size = 2; size <= 9; ++size) {
    for (int rank = 0; rank < size; ++rank) {
      const auto steps = ring_schedule(rank, size), previous = ring_schedule((rank + size - 1) % size, size);
      ASSERT_EQ(steps.size(), 2u * static_cast<unsigned>(size - 1));
      for (std::size_t s = 0; s < steps.size(); ++s) {
        EXPECT_EQ(steps[s].receive, previous[s].send);
        if (s > 0) {
          EXPECT_EQ(steps[s].send, steps[s - 1].receive);
        }
      }
    }
  }
}

TEST(RingSchedule, OfOneRankHasNoSteps) { EXPECT_THAT(ring_schedule(0, 1), IsEmpty()); }

// Goyal et al., section 4: rank 0 sends the second half to rank 1 and receives the first; then the distance doubles and
// the data halves; the allgather retraces.
TEST(HalvingDoublingSchedule, IsThatOfThePaperForFour) {
  const auto rank0 = halving_doubling_schedule(0, 4);
  EXPECT_EQ(rank0.units, 4);
  EXPECT_THAT(rank0.reduction,
              ElementsAre(HalvingDoublingStep{1, {2, 4}, {0, 2}, true}, HalvingDoublingStep{2, {1, 2}, {0, 1}, true}));
  EXPECT_EQ(rank0.sums, (Range{0, 1}));
  EXPECT_THAT(rank0.distribution, ElementsAre(HalvingDoublingStep{2, {0, 1}, {1, 2}, false},
                                              HalvingDoublingStep{1, {0, 2}, {2, 4}, false}));
  const auto rank3 = halving_doubling_schedule(3, 4);
  EXPECT_THAT(rank3.reduction,
              ElementsAre(HalvingDoublingStep{2, {0, 2}, {2, 4}, true}, HalvingDoublingStep{1, {2, 3}, {3, 4}, true}));
  EXPECT_EQ(rank3.sums, (Range{3, 4}));
}

TEST(HalvingDoublingSchedule, HasPartnersOneTwoAndFourAwayForEight) {
  const auto schedule = halving_doubling_schedule(5, 8);
  EXPECT_THAT(schedule.reduction,
              ElementsAre(HalvingDoublingStep{4, {0, 4}, {4, 8}, true}, HalvingDoublingStep{7, {6, 8}, {4, 6}, true},
                          HalvingDoublingStep{1, {4, 5}, {5, 6}, true}));
}

// Rabenseifner & Träff: 3 = 2 + 1. Rank 2 sends one half to each of the others and gets it back.
TEST(HalvingDoublingSchedule, CutsThreeIntoBlocksOfTwoAndOne) {
  const auto rank0 = halving_doubling_schedule(0, 3), rank2 = halving_doubling_schedule(2, 3);
  EXPECT_THAT(rank0.reduction,
              ElementsAre(HalvingDoublingStep{1, {1, 2}, {0, 1}, true}, HalvingDoublingStep{2, {}, {0, 1}, true}));
  EXPECT_THAT(rank0.distribution,
              ElementsAre(HalvingDoublingStep{2, {0, 1}, {}, false}, HalvingDoublingStep{1, {0, 1}, {1, 2}, false}));
  EXPECT_THAT(rank2.reduction,
              ElementsAre(HalvingDoublingStep{0, {0, 1}, {}, true}, HalvingDoublingStep{1, {1, 2}, {}, true}));
  EXPECT_TRUE(rank2.sums.empty());
  EXPECT_THAT(rank2.distribution,
              ElementsAre(HalvingDoublingStep{1, {}, {1, 2}, false}, HalvingDoublingStep{0, {}, {0, 1}, false}));
}

// 5 = 4 + 1: rank 4 sends each of the others its quarter; ranks 0 to 3 have these in bit-reversed order.
TEST(HalvingDoublingSchedule, CutsFiveIntoBlocksOfFourAndOne) {
  EXPECT_THAT(halving_doubling_schedule(4, 5).reduction,
              ElementsAre(HalvingDoublingStep{0, {0, 1}, {}, true}, HalvingDoublingStep{1, {2, 3}, {}, true},
                          HalvingDoublingStep{2, {1, 2}, {}, true}, HalvingDoublingStep{3, {3, 4}, {}, true}));
  EXPECT_THAT(halving_doubling_schedule(2, 5).distribution,
              ElementsAre(HalvingDoublingStep{4, {1, 2}, {}, false}, HalvingDoublingStep{0, {1, 2}, {0, 1}, false},
                          HalvingDoublingStep{3, {0, 2}, {2, 4}, false}));
}

// 6 = 4 + 2: 4 and 5 halve first, then each serves the two ranks that have the quarters of its half.
TEST(HalvingDoublingSchedule, CutsSixIntoBlocksOfFourAndTwo) {
  EXPECT_THAT(halving_doubling_schedule(5, 6).reduction,
              ElementsAre(HalvingDoublingStep{4, {0, 2}, {2, 4}, true}, HalvingDoublingStep{1, {2, 3}, {}, true},
                          HalvingDoublingStep{3, {3, 4}, {}, true}));
  EXPECT_THAT(halving_doubling_schedule(1, 6).reduction,
              ElementsAre(HalvingDoublingStep{0, {0, 2}, {2, 4}, true}, HalvingDoublingStep{3, {3, 4}, {2, 3}, true},
                          HalvingDoublingStep{5, {}, {2, 3}, true}));
}

// 7 = 4 + 2 + 1: rank 6 sends to 4 and 5, and these to 0, 2 and 1, 3.
TEST(HalvingDoublingSchedule, ChainsTheBlocksOfSevenBeginningWithTheSmallest) {
  EXPECT_THAT(halving_doubling_schedule(6, 7).reduction,
              ElementsAre(HalvingDoublingStep{4, {0, 2}, {}, true}, HalvingDoublingStep{5, {2, 4}, {}, true}));
  EXPECT_THAT(halving_doubling_schedule(4, 7).reduction,
              ElementsAre(HalvingDoublingStep{5, {2, 4}, {0, 2}, true}, HalvingDoublingStep{6, {}, {0, 2}, true},
                          HalvingDoublingStep{0, {0, 1}, {}, true}, HalvingDoublingStep{2, {1, 2}, {}, true}));
  EXPECT_THAT(halving_doubling_schedule(3, 7).reduction,
              ElementsAre(HalvingDoublingStep{2, {0, 2}, {2, 4}, true}, HalvingDoublingStep{1, {2, 3}, {3, 4}, true},
                          HalvingDoublingStep{5, {}, {3, 4}, true}));
}

// How often each rank's contribution is in each rank's units.
using Contents = std::vector<std::vector<std::map<int, int>>>;  // [rank][unit]: of rank → times

void apply(Contents& contents, int rank, const HalvingDoublingStep& step,
           const std::vector<std::map<int, int>>& message) {
  for (int unit = step.receive.first; unit < step.receive.last; ++unit) {
    auto& here = contents[static_cast<std::size_t>(rank)][static_cast<std::size_t>(unit)];
    const auto& there = message[static_cast<std::size_t>(unit)];
    if (!step.add) {
      here = there;
    } else {
      for (const auto& [of, times] : there) here[of] += times;
    }
  }
}

// Simulates the schedules of all ranks as blocking exchanges: a step happens when both partners are at matching steps.
void play(int size) {
  std::vector<std::vector<HalvingDoublingStep>> steps;
  Contents contents;
  for (int rank = 0; rank < size; ++rank) {
    const auto schedule = halving_doubling_schedule(rank, size);
    steps.push_back(schedule.reduction);
    steps.back().insert(steps.back().end(), schedule.distribution.begin(), schedule.distribution.end());
    contents.emplace_back(static_cast<std::size_t>(schedule.units), std::map<int, int>{{rank, 1}});
  }
  std::vector<std::size_t> next(static_cast<std::size_t>(size), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < size; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      if (next[r] == steps[r].size()) continue;
      const HalvingDoublingStep& step = steps[r][next[r]];
      const auto p = static_cast<std::size_t>(step.partner);
      if (next[p] == steps[p].size() || steps[p][next[p]].partner != rank) continue;
      const HalvingDoublingStep& other = steps[p][next[p]];
      EXPECT_EQ(step.send, other.receive) << size << " ranks, " << rank << " and " << step.partner;
      EXPECT_EQ(step.receive, other.send);
      EXPECT_EQ(step.add, other.add);
      const auto from_rank = contents[r], from_partner = contents[p];
      apply(contents, rank, step, from_partner);
      apply(contents, step.partner, other, from_rank);
      ++next[r];
      ++next[p];
      moved = true;
    }
  }
  for (std::size_t rank = 0; rank < next.size(); ++rank) {
    EXPECT_EQ(next[rank], steps[rank].size()) << "rank " << rank << " of " << size << " waits for ever";
    for (const auto& unit : contents[rank]) {
      EXPECT_EQ(unit.size(), static_cast<std::size_t>(size));
      for (const auto& [of, times] : unit) EXPECT_EQ(times, 1) << "of " << of << " on " << rank << ", " << size;
    }
  }
}

TEST(HalvingDoublingSchedule, DeliversEveryContributionOnceToEveryRank) {
  for (int size = 1; size <= 33; ++size) play(size);
}

TEST(HalvingDoublingSchedule, CompletesEachSumOnOneRank) {
  for (int size = 1; size <= 33; ++size) {
    std::vector<int> completed;
    for (int rank = 0; rank < size; ++rank) {
      const auto schedule = halving_doubling_schedule(rank, size);
      completed.resize(static_cast<std::size_t>(schedule.units));
      for (int unit = schedule.sums.first; unit < schedule.sums.last; ++unit) {
        ++completed[static_cast<std::size_t>(unit)];
      }
    }
    EXPECT_THAT(completed, testing::Each(1)) << size;
  }
}

// 2·log2 p steps, 2(p − 1)/p of the vector sent.
TEST(HalvingDoublingSchedule, HasThePapersCostForPowersOfTwo) {
  for (int log = 0; log <= 6; ++log) {
    const int size = 1 << log;
    for (int rank = 0; rank < size; ++rank) {
      const auto schedule = halving_doubling_schedule(rank, size);
      EXPECT_EQ(schedule.reduction.size() + schedule.distribution.size(), 2u * static_cast<unsigned>(log));
      int sent = 0;
      for (const auto* phase : {&schedule.reduction, &schedule.distribution}) {
        for (const auto& step : *phase) sent += step.send.last - step.send.first;
      }
      EXPECT_EQ(sent, 2 * (size - 1));  // in units of 1/p
    }
  }
}

TEST(SliceOf, CutsIntoAdjacentNestedParts) {
  for (const std::size_t count : {0u, 1u, 7u, 8u, 1001u}) {
    for (std::size_t parts = 1; parts <= 9; ++parts) {
      std::size_t next = 0;
      for (std::size_t i = 0; i < parts; ++i) {
        const Slice slice = slice_of(count, parts, i);
        EXPECT_EQ(slice.first, next);
        EXPECT_EQ(slice.first, slice_of(count, parts * 4, i * 4).first);
        EXPECT_LE(slice.count - count / parts, 1u);
        next += slice.count;
      }
      EXPECT_EQ(next, count);
    }
  }
}

}  // namespace
}  // namespace paceline::train
