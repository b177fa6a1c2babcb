// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace/innermost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

using Stretch = std::tuple<std::int64_t, std::int64_t, std::uint32_t>;

// Slice 0 from 0 to 100, with slice 1 from 10 to 40, in which slice 2 lies from 20 to 30, and slice 3 from 50 to 60.
class Innermost : public ::testing::Test {
 protected:
  Innermost() {
    TrackBuilder& main = run_.add_rank(0, 1).add_main_thread();
    main.add_slice(0, 100, "outer", "", "");
    main.add_slice(10, 40, "left", "", "");
    main.add_slice(20, 30, "inner", "", "");
    main.add_slice(50, 60, "right", "", "");
    trace_ = run_.finish();
  }

  template <class Skip>
  std::vector<Stretch> stretches(Skip&& skip) const {
    std::vector<Stretch> found;
    each_innermost(
        trace_.ranks[0].tracks[0].slices, 1000,
        [&](std::int64_t from, std::int64_t until, std::uint32_t slice) { found.emplace_back(from, until, slice); },
        skip);
    return found;
  }

  TraceBuilder run_;
  Trace trace_;
};

TEST_F(Innermost, EachStretchHasOneSlice) {
  EXPECT_THAT(stretches([](std::uint32_t) { return false; }),
              ::testing::ElementsAre(Stretch(0, 10, 0), Stretch(10, 20, 1), Stretch(20, 30, 2), Stretch(30, 40, 1),
                                     Stretch(40, 50, 0), Stretch(50, 60, 3), Stretch(60, 100, 0)));
}

TEST_F(Innermost, ASkippedSliceLeavesItsTimeToTheOneAroundIt) {
  EXPECT_THAT(stretches([](std::uint32_t slice) { return slice == 1; }),
              ::testing::ElementsAre(Stretch(0, 20, 0), Stretch(20, 30, 2), Stretch(30, 50, 0), Stretch(50, 60, 3),
                                     Stretch(60, 100, 0)));
  EXPECT_THAT(stretches([](std::uint32_t slice) { return slice != 2; }), ::testing::ElementsAre(Stretch(20, 30, 2)));
}

}  // namespace
}  // namespace paceline::analysis
