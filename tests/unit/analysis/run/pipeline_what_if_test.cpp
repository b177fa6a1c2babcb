// SPDX-License-Identifier: Apache-2.0
// Predictions for hand-made pipelines, worked out on paper.
#include "analysis/run/pipeline_what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "profiler/format/error.h"
#include "tests/unit/analysis/pipeline_job.h"

namespace paceline::analysis {
namespace {

using testing::HasSubstr;

// GPipe with stage 1 three times as long as stage 0: four parts, of which each takes 10 and 20 ms for a microbatch.
// A step takes 230 ms.
PipelineJob uneven_pipeline() {
  return {.first = {{'F', 0, 0, 10}, {'F', 1, 10, 20}, {'B', 0, 130, 150}, {'B', 1, 190, 210}},
          .second = {{'F', 0, 10, 40}, {'F', 1, 40, 70}, {'B', 0, 70, 130}, {'B', 1, 130, 190}},
          .length = 210,
          .parts = {{"conv1", 7}, {"layer1.0.conv1", 5}, {"layer2.0.conv1", 5}, {"fc", 5}},
          .split = "layer1.0.conv1"};
}

RunAnalysis uneven_run() { return analyse_run(pipeline_trace(uneven_pipeline()), "run"); }

std::string refusal_of(const PipelineChange& change) {
  try {
    predict_pipeline(uneven_run(), change);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PipelineWhatIf, LeavesTheRecordedPipelineAsItIs) {
  const PipelinePrediction same = predict_pipeline(uneven_run(), {.microbatches = 2, .stages = 2});
  EXPECT_NEAR(same.length_s, 0.210, 1e-9);
  EXPECT_NEAR(same.step_s, 0.230, 1e-9);
  EXPECT_EQ(same.longest, 1u);
  EXPECT_NEAR(same.imbalance, 1.5, 1e-9);
  EXPECT_EQ(same.split, "");
}

// Four microbatches of 5 and 10 ms on stage 0 and 15 and 30 ms on stage 1: 5 + 4 · 45 + 10 ms.
TEST(PipelineWhatIf, PredictsAnotherNumberOfMicrobatches) {
  const PipelinePrediction more = predict_pipeline(uneven_run(), {.microbatches = 4});
  EXPECT_NEAR(more.length_s, 0.195, 1e-9);
  EXPECT_NEAR(more.step_s, 0.215, 1e-9);
  EXPECT_NEAR(more.bubble, 1 - 240.0 / 390, 1e-9);
}

// Two stages of 20 and 40 ms take 60 · 3 ms.
TEST(PipelineWhatIf, PredictsAnotherSplit) {
  const PipelinePrediction even = predict_pipeline(uneven_run(), {.split = "layer2"});
  EXPECT_NEAR(even.length_s, 0.180, 1e-9);
  EXPECT_NEAR(even.step_s, 0.200, 1e-9);
  EXPECT_NEAR(even.bubble, 1.0 / 3, 1e-9);
  EXPECT_NEAR(even.imbalance, 1, 1e-9);
  EXPECT_EQ(even.split, "layer2.0.conv1");
  EXPECT_NEAR(predict_pipeline(uneven_run(), {.split = "fc"}).length_s, 0.210, 1e-9);
}

TEST(PipelineWhatIf, FindsTheSplitWithTheShortestStep) {
  EXPECT_EQ(predict_pipeline(uneven_run(), {.split = "balanced"}).split, "layer2.0.conv1");
  const auto better = better_split(uneven_run());
  ASSERT_TRUE(better);
  EXPECT_EQ(better->split, "layer2.0.conv1");
  PipelineJob even = usual_pipeline();
  even.parts = {{"conv1", 1}, {"fc", 1}};
  even.split = "fc";
  EXPECT_FALSE(better_split(analyse_run(pipeline_trace(even), "run")));
}

// Four equal stages of 10 and 20 ms take 30 · 5 ms.
TEST(PipelineWhatIf, PredictsAnotherNumberOfStages) {
  const PipelinePrediction four = predict_pipeline(uneven_run(), {.stages = 4});
  EXPECT_NEAR(four.length_s, 0.150, 1e-9);
  EXPECT_EQ(four.split, "layer1.0.conv1,layer2.0.conv1,fc");
  const PipelinePrediction one = predict_pipeline(uneven_run(), {.stages = 1});
  EXPECT_NEAR(one.length_s, 0.240, 1e-9);
  EXPECT_NEAR(one.bubble, 0, 1e-9);
  const PipelinePrediction both = predict_pipeline(uneven_run(), {.microbatches = 4, .stages = 4});
  EXPECT_NEAR(both.length_s, 0.105, 1e-9);
}

TEST(PipelineWhatIf, RefusesWhatIsImpossible) {
  EXPECT_THAT(refusal_of({.microbatches = 3}), HasSubstr("--microbatches 3: does not divide the batch of 4"));
  EXPECT_THAT(refusal_of({.stages = 5}), HasSubstr("--stages 5: the network has 4 parts"));
  EXPECT_THAT(refusal_of({.split = "layer9"}), HasSubstr("cannot be cut before a layer 'layer9'; use some of layer1"));
  EXPECT_THAT(refusal_of({.split = "layer1,fc"}), HasSubstr("2 layers begin 3 stages, but there are 2"));
  EXPECT_THAT(refusal_of({.stages = 3, .split = "fc,layer1"}), HasSubstr("not in the network's order"));
}

TEST(PipelineWhatIf, NeedsAPipelineAndForOtherStagesItsParts) {
  PipelineJob job = uneven_pipeline();
  job.parts.clear();
  const RunAnalysis no_parts = analyse_run(pipeline_trace(job), "run");
  EXPECT_NEAR(predict_pipeline(no_parts, {.microbatches = 4}).length_s, 0.195, 1e-9);
  EXPECT_THROW(predict_pipeline(no_parts, {.stages = 4}), Error);
  EXPECT_FALSE(better_split(no_parts));
  job.described = false;
  EXPECT_THROW(predict_pipeline(analyse_run(pipeline_trace(job), "run"), {.microbatches = 4}), Error);
}

TEST(PipelineWhatIf, ListsWhatChangesTheStep) {
  const WhatIf all = pipeline_what_if(uneven_run(), {}, "");
  std::vector<std::string> options;
  for (const Prediction& of : all.predictions) options.push_back(of.options);
  EXPECT_THAT(options, testing::ElementsAre("--microbatches 1", "--microbatches 4", "--stages 4", "--split balanced"));
  EXPECT_NEAR(all.step_s, 0.230, 1e-9);
  EXPECT_NEAR(all.predictions[3].ratio, 200.0 / 230, 1e-9);
  EXPECT_EQ(all.predictions[3].title, "2 stages of 2 microbatches, split layer2.0.conv1");
}

TEST(PipelineWhatIf, IsInTheReport) {
  const Report report = build_report({uneven_run()});
  std::string sentences;
  for (const Finding& finding : report.findings) sentences += finding.text + "\n";
  EXPECT_THAT(sentences,
              HasSubstr("With --pipeline-split layer2.0.conv1 its stages would wait 33.3 %, and a step would "
                        "take 200 ms instead of 230 ms."));
  EXPECT_EQ(report_json(report)["runs"][0]["pipeline"]["better_split"]["split"], "layer2.0.conv1");
}

}  // namespace
}  // namespace paceline::analysis
