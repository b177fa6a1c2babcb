// SPDX-License-Identifier: Apache-2.0
// The figures of hand-made pipelines, worked out on paper.
#include "analysis/run/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "tests/unit/analysis/pipeline_job.h"

namespace paceline::analysis {
namespace {

using testing::HasSubstr;

// The second stage ends its first iteration late, which medians leave out.
Trace usual_trace() {
  PipelineJob late = usual_pipeline();
  late.second[3].end = 119;
  return pipeline_trace(usual_pipeline(), 5, {{0, late}});
}

TEST(Pipeline, GivesBubblesAndTheLongestStage) {
  const auto p = pipeline_figures(analyse_run(usual_trace(), "run"));
  ASSERT_TRUE(p);
  ASSERT_EQ(p->stages.size(), 2u);
  EXPECT_EQ(p->microbatches, 2u);
  EXPECT_NEAR(p->length_s, 0.120, 1e-9);
  EXPECT_NEAR(p->bubble, 1 - 150.0 / 240, 1e-9);
  EXPECT_NEAR(p->ideal_bubble, 1.0 / 3, 1e-9);
  EXPECT_NEAR(p->stages[0].forward_s, 0.010, 1e-9);
  EXPECT_NEAR(p->stages[0].backward_s, 0.020, 1e-9);
  EXPECT_NEAR(p->stages[0].bubble, 0.5, 1e-9);
  EXPECT_NEAR(p->stages[1].busy_s, 0.090, 1e-9);
  EXPECT_NEAR(p->stages[1].bubble, 0.25, 1e-9);
  EXPECT_EQ(p->longest, 1u);
  EXPECT_NEAR(p->imbalance, 90.0 / 75, 1e-9);
}

TEST(Pipeline, IsPredictedFromTheTimesOfItsStages) {
  const auto p = pipeline_figures(analyse_run(usual_trace(), "run"));
  ASSERT_TRUE(p);
  EXPECT_NEAR(p->predicted_length_s, 0.120, 1e-9);
  EXPECT_NEAR(p->predicted_bubble, 0.375, 1e-9);
  ASSERT_EQ(p->others.size(), 3u);
  EXPECT_EQ(p->others[0].microbatches, 1u);
  EXPECT_NEAR(p->others[0].length_s, 0.150, 1e-9);
  EXPECT_NEAR(p->others[0].bubble, 0.5, 1e-9);
  EXPECT_EQ(p->others[1].microbatches, 4u);
  EXPECT_NEAR(p->others[1].length_s, 0.105, 1e-9);
}

// K equal stages with M microbatches wait (K − 1) ÷ (M + K − 1) of the time, with both schedules.
TEST(Pipeline, OfEqualStagesHasTheIdealLength) {
  for (const std::size_t k : {2, 3, 5}) {
    for (const std::size_t m : {1, 2, 4, 9}) {
      std::vector<PipelineStage> stages(k);
      for (PipelineStage& stage : stages) {
        stage.forward_s = 1;
        stage.backward_s = 2;
      }
      for (const char* schedule : {"gpipe", "1f1b"}) {
        EXPECT_DOUBLE_EQ(pipeline_length(stages, m, schedule), 3.0 * static_cast<double>(m + k - 1)) << schedule;
      }
    }
  }
}

TEST(Pipeline, GivesTheBubblesOfEachIteration) {
  const auto p = pipeline_figures(analyse_run(usual_trace(), "run"));
  ASSERT_TRUE(p);
  ASSERT_EQ(p->iterations.size(), 5u);
  EXPECT_EQ(p->iterations[0].number, 0);
  EXPECT_NEAR(p->iterations[0].length_s, 0.120, 1e-9);
  EXPECT_NEAR(p->iterations[0].stage_bubble(0), 0.5, 1e-9);
  EXPECT_NEAR(p->iterations[0].stage_bubble(1), 1 - 109.0 / 120, 1e-9);
  EXPECT_NEAR(p->iterations[0].bubble, 1 - 169.0 / 240, 1e-9);
  EXPECT_NEAR(p->iterations[4].stage_bubble(1), 0.25, 1e-9);
  EXPECT_FALSE(p->slowest);
}

// In iteration 5 stage 0 takes 80 ms longer for its last backward pass.
TEST(Pipeline, NamesAnIterationThatTookClearlyLonger) {
  PipelineJob slow = usual_pipeline();
  slow.first[3].end = slow.length = 200;
  const RunAnalysis run = analyse_run(pipeline_trace(usual_pipeline(), 8, {{5, slow}}), "run");
  const auto p = pipeline_figures(run);
  ASSERT_TRUE(p && p->slowest);
  EXPECT_EQ(*p->slowest, 5u);
  EXPECT_EQ(p->slowest_stage, 0u);
  const Report report = build_report({run});
  const auto json = report_json(report)["runs"][0]["pipeline"];
  EXPECT_EQ(json["slowest_iteration"], 5);
  EXPECT_NEAR(json["iterations"][5]["stage_bubbles"][0].get<double>(), 1 - 140.0 / 200, 1e-9);
  std::string sentences;
  for (const Finding& finding : report.findings) sentences += finding.text + "\n";
  EXPECT_THAT(sentences, HasSubstr("The pipeline took longest in iteration 5: 200 ms with 42.5 % of waiting, where "
                                   "120 ms is usual. Stage 0 (rank 0) worked 140 ms in it."));
}

TEST(Pipeline, NeedsTheDescriptionOfTheRun) {
  PipelineJob undescribed = usual_pipeline();
  undescribed.described = false;
  EXPECT_FALSE(pipeline_figures(analyse_run(pipeline_trace(undescribed), "run")));
}

TEST(Pipeline, IsInTheReport) {
  const Report report = build_report({analyse_run(usual_trace(), "run")});
  const auto json = report_json(report)["runs"][0]["pipeline"];
  EXPECT_NEAR(json["bubble"].get<double>(), 0.375, 1e-9);
  EXPECT_EQ(json["longest_stage"], 1);
  EXPECT_EQ(json["stages"][1]["ranks"][0], 1);
  std::string sentences;
  for (const Finding& finding : report.findings) sentences += finding.text + "\n";
  EXPECT_THAT(sentences, HasSubstr("The 2 stages of the pipeline wait for each other 37.5 %"));
  EXPECT_THAT(sentences, HasSubstr("2 equal stages with 2 microbatches would wait 33.3 %"));
  EXPECT_THAT(sentences, HasSubstr("The longest stage is 1 (rank 1): 90.0 ms of work in an iteration, 1.20 times"));
}

}  // namespace
}  // namespace paceline::analysis
