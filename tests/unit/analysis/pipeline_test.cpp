// The figures of hand-made pipelines, worked out on paper.
#include "analysis/run/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

using testing::HasSubstr;

constexpr std::int64_t ns_in_ms = 1'000'000;

struct StageTask {
  char kind;  // F or B
  int microbatch;
  std::int64_t start, end;  // ms from the iteration's start
};

void add_iteration(TrackBuilder& main, int stage, std::int64_t start, int number, const std::vector<StageTask>& work) {
  const auto at = [start](std::int64_t time) { return (start + time) * ns_in_ms; };
  main.push(at(0), "iteration", "paceline.trainer", "iteration");
  main.argument("payload", number);
  main.push(at(0), "stage " + std::to_string(stage), "paceline.trainer", "stage");
  main.argument("payload", stage);
  for (const StageTask& one : work) {
    main.push(at(one.start), "microbatch", "paceline.trainer", "microbatch");
    main.argument("payload", one.microbatch);
    const char* const name = one.kind == 'F' ? "forward" : "backward";
    main.push(at(one.start), name, "paceline.trainer", name);
    main.pop(at(one.end));
    main.pop(at(one.end));
  }
  main.pop(at(120));
  main.pop(at(140));
}

// GPipe with two microbatches. Stage 0 takes 10 and 20 ms for one, stage 1 takes 15 and 30 ms.
const std::vector<StageTask> first_stage = {{'F', 0, 0, 10}, {'F', 1, 10, 20}, {'B', 0, 70, 90}, {'B', 1, 100, 120}};
const std::vector<StageTask> second_stage = {{'F', 0, 10, 25}, {'F', 1, 25, 40}, {'B', 0, 40, 70}, {'B', 1, 70, 100}};

// The second stage starts its first iteration late, which medians leave out.
Trace pipeline_trace(bool described = true) {
  TraceBuilder run;
  for (const int stage : {0, 1}) {
    RankBuilder& rank = run.add_rank(stage, 2);
    TrackBuilder& main = rank.add_main_thread();
    if (described) {
      const std::uint32_t mark = main.add_mark(
          0, R"({"pipeline_stages": 2, "microbatches": 2, "pipeline_schedule": "gpipe"})", "paceline.trainer", "run");
      static_cast<void>(mark);
    }
    for (int i = 0; i < 5; ++i) {
      std::vector<StageTask> work = stage == 0 ? first_stage : second_stage;
      if (i == 0 && stage == 1) work[3].end = 119;
      add_iteration(main, stage, 140 * i, i, work);
    }
  }
  return run.finish();
}

TEST(Pipeline, GivesBubblesAndTheLongestStage) {
  const auto p = pipeline_figures(analyse_run(pipeline_trace(), "run"));
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
  const auto p = pipeline_figures(analyse_run(pipeline_trace(), "run"));
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

TEST(Pipeline, NeedsTheDescriptionOfTheRun) {
  EXPECT_FALSE(pipeline_figures(analyse_run(pipeline_trace(false), "run")));
}

TEST(Pipeline, IsInTheReport) {
  const Report report = build_report({analyse_run(pipeline_trace(), "run")});
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
