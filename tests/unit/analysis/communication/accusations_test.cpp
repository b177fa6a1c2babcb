// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/accusations.h"

#include <gtest/gtest.h>

#include <array>

#include "analysis/communication/end_differences.h"

namespace paceline::analysis {
namespace {

LatenessTest test_with(std::vector<double> p_alone, std::size_t tests) {
  LatenessTest test;
  test.judged = true;
  test.tests = tests;
  for (const double p : p_alone) {
    test.late.push_back({.rank = static_cast<std::uint32_t>(test.late.size()), .p_alone = p});
  }
  return test;
}

// By hand: of four ranks each has a quarter of the level. The first needs 0.01 · 4 = 0.04, the second, with three
// quarters left, 0.02 · 3 = 0.06.
TEST(Accusations, RanksOfOneTestShareTheLevel) {
  LatenessTest test = test_with({0.01, 0.02}, 4);
  correct_for_all(std::array{Accuser{.late = &test}});
  ASSERT_EQ(test.late.size(), 1U);
  EXPECT_DOUBLE_EQ(test.late[0].p, 0.04);
}

// By hand: the weights 8 and 1 give 8/9 and 1/9 of the level. 0.002 · 2 ranks · 9/8 = 0.0045; then 5 of 9 parts are
// left, and 0.008 needs 0.008 · 5 = 0.04. The change has 0.02 · 5 > 0.05.
TEST(Accusations, QuestionsOfAReportShareTheLevel) {
  LatenessTest ranks = test_with({0.002}, 2), hosts = test_with({}, 2);
  hosts.judged = false;
  StepChangeTest change;
  change.judged = true;
  change.change = StepChange{.p_alone = 0.02};
  const auto correct = [&] {
    correct_for_all(std::array{Accuser{.late = &ranks, .weight = slow_ranks_weight}, Accuser{.late = &hosts},
                               Accuser{.change = &change}});
  };
  correct();
  ASSERT_EQ(ranks.late.size(), 1U);
  EXPECT_DOUBLE_EQ(ranks.late[0].p, 0.002 * 2 * 9 / 8);
  EXPECT_FALSE(change.change);
  change.change = StepChange{.p_alone = 0.008};
  correct();
  ASSERT_TRUE(change.change);
  EXPECT_DOUBLE_EQ(change.change->p, 0.04);
}

TEST(Accusations, TheLevelMayBeSmaller) {
  LatenessTest test = test_with({0.01}, 2);
  correct_for_all(std::array{Accuser{.late = &test}}, 0.01);
  EXPECT_TRUE(test.late.empty());
}

Collectives one_allreduce(const char* operation) {
  Collectives collectives;
  collectives.operations = {operation};
  Collective collective;
  for (std::uint32_t r = 0; r < 3; ++r) {
    const std::int64_t start = 100 * r;
    collective.calls.push_back(
        {.rank = r, .start_ns = start, .end_ns = r == 2 ? 900 : 500 + r, .blocked_from_ns = start});
  }
  collectives.matched = {collective};
  return collectives;
}

TEST(EndDifferences, AreThoseOfCollectivesThatAllLeaveTogether) {
  EXPECT_EQ(end_differences(one_allreduce("MPI_Allreduce"), 3), (std::vector<double>{-1, 0, 399}));
  EXPECT_TRUE(end_differences(one_allreduce("MPI_Bcast"), 3).empty());
  EXPECT_TRUE(end_differences(one_allreduce("MPI_Reduce"), 3).empty());
  EXPECT_TRUE(end_differences(one_allreduce("MPI_Allreduce"), 4).empty());
  Collectives later = one_allreduce("MPI_Iallreduce");
  later.matched[0].calls[1].blocked_from_ns += 50;
  EXPECT_TRUE(end_differences(later, 3).empty());
}

}  // namespace
}  // namespace paceline::analysis
