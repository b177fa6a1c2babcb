// SPDX-License-Identifier: Apache-2.0
#include "trainer/guard/watchdog.h"

#include <gmock/gmock.h>

namespace paceline::train {
namespace {

using testing::HasSubstr;

TEST(MissingRanks, AreNamedWithTheirActivity) {
  const std::vector<std::string> hosts{"a", "a", "b", "b", "c", "c", "d"};
  const RankState waits{12, 40, 31'000, 0, -1, 0}, computes{11, 39, -1, 31'500, -1, 0},
      reads{11, 39, -1, 32'000, 31'900, 0}, saves{12, 39, -1, 33'000, -1, 1}, earlier{12, 39, 34'000, 0, -1, 0};
  EXPECT_EQ(
      missing_ranks("allreduce", 31, 0, {waits, computes, waits}, hosts),
      "an MPI allreduce of iteration 12 has waited 31 s for rank 1 on a, which has computed for 32 s in iteration 11 "
      "(‹comm-timeout›)");
  EXPECT_THAT(missing_ranks("allreduce", 31, 0, {waits, waits, reads}, hosts),
              HasSubstr("for rank 2 on b, which has waited for images for 32 s in iteration 11"));
  EXPECT_THAT(missing_ranks("broadcast", 31, 1, {saves, waits, std::nullopt}, hosts),
              AllOf(HasSubstr("rank 0 on a, which has been writing a checkpoint for 33 s"),
                    HasSubstr("; rank 2 on b, which does not answer: its process is stopped or its host is gone")));
  EXPECT_THAT(missing_ranks("allreduce", 31, 0, {waits, earlier}, hosts),
              HasSubstr("is waiting in an earlier collective call"));
  EXPECT_THAT(missing_ranks("allreduce", 31, 0, {waits, waits}, hosts), HasSubstr("although all ranks have called it"));
  EXPECT_THAT(
      missing_ranks("allreduce", 31, 0, {waits, computes, computes, computes, computes, computes, computes}, hosts),
      AllOf(HasSubstr("rank 4 on c"), testing::Not(HasSubstr("rank 5")), HasSubstr("and 2 ranks more")));
}

}  // namespace
}  // namespace paceline::train
