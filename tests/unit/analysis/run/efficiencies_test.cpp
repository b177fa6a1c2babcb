// SPDX-License-Identifier: Apache-2.0
// The efficiencies of a hand-made job (report_job.h), worked out on paper.
#include "analysis/run/efficiencies.h"

#include <gtest/gtest.h>

#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "tests/unit/analysis/report_job.h"

namespace paceline::analysis {
namespace {

TEST(Efficiencies, AreThoseOfTheHandMadeJob) {
  // 4 iterations of 120 ms: rank 0 communicates for 20 ms of each, rank 1 for 10 ms.
  const RunAnalysis run = analyse_run(make_trace({.ranks = 2}), "run2");
  ASSERT_TRUE(run.efficiencies);
  EXPECT_EQ(run.efficiencies->useful_ns, (std::vector<std::int64_t>{400'000'000, 440'000'000}));
  EXPECT_DOUBLE_EQ(run.efficiencies->load_balance, 420.0 / 440);
  EXPECT_DOUBLE_EQ(run.efficiencies->communication, 440.0 / 480);
  EXPECT_DOUBLE_EQ(run.efficiencies->parallel, 420.0 / 480);
  const auto json = report_json(build_report({run}));
  EXPECT_DOUBLE_EQ(json["runs"][0]["efficiencies"]["parallel"].get<double>(), 0.875);
  EXPECT_EQ(json["runs"][0]["per_rank"][1]["useful_ns"], 440'000'000);
}

TEST(Efficiencies, OneRankHasNone) { EXPECT_FALSE(analyse_run(make_trace({.ranks = 1}), "run1").efficiencies); }

}  // namespace
}  // namespace paceline::analysis
