// SPDX-License-Identifier: Apache-2.0
// The order of a report: verdict, picture, reasons, changes that pay, details; and what each of them has to answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/report/build.h"
#include "analysis/report/changes.h"
#include "analysis/report/glossary.h"
#include "analysis/report/outline.h"
#include "analysis/report/render.h"
#include "analysis/report/sentences.h"
#include "analysis/scaling/runs_table.h"
#include "tests/unit/analysis/checked_report.h"
#include "tests/unit/analysis/report_job.h"

namespace paceline::analysis {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

RunAnalysis analysed(int ranks) { return analyse_run(make_trace({.ranks = ranks}), "run" + std::to_string(ranks)); }

Report two_jobs() { return build_report({analysed(1), analysed(2)}); }

// T(1)/2 = 1.00 s and W(2) = 1.605 s, of which 0.525 s are serial work: without it S = 2.00 / (1.605 − 0.525).
TEST(VerdictOfAReport, NamesWhatLimitsTheSpeedUpAndWhatItsLossCosts) {
  const Report report = two_jobs();
  EXPECT_THAT(report.verdict.state, AllOf(HasSubstr("2 ranks trained 1.25 times as fast as one"),
                                          HasSubstr("; 525 ms of 605 ms lost are serial work, mostly startup")));
  EXPECT_THAT(report.verdict.change, HasSubstr("first: a shorter start-up, or a longer run (speed-up at most 1.85)."));
  const auto json = nlohmann::json::parse(render_json(report));
  EXPECT_EQ(json["verdict"], nlohmann::json({report.verdict.state, report.verdict.change}));
}

TEST(VerdictOfAReport, NamesTheRankThatTheTestOfLatenessNames) {
  RunAnalysis run = analysed(2);
  run.critical_path.reset();
  EXPECT_THAT(build_report({run}).verdict.state, HasSubstr("too short to tell whether a rank is slow"));
  run.lateness.judged = true;
  EXPECT_THAT(build_report({run}).verdict.state, HasSubstr("no rank is late beyond chance"));
  run.lateness.late = {{.rank = 1, .behind_ns = 1e7, .share_of_step = 0.083, .p_alone = 0.0005}};
  run.lateness.iterations = 450;
  run.lateness_causes = {{.phase = {}, .pattern = {.affected = 440}}};
  EXPECT_THAT(build_report({run}).verdict.state,
              HasSubstr("rank 1 on alice holds the others up, 10.0 ms late in each step"));
  run.lateness_causes[0].pattern.affected = 150;
  EXPECT_THAT(build_report({run}).verdict.state,
              HasSubstr("holds the others up, 10.0 ms late on average and late in 150 of 450 steps"));
  run.host_lateness.judged = true;
  run.host_lateness.late = {{.rank = 0, .behind_ns = 1e7, .share_of_step = 0.083, .p_alone = 0.0005}};
  EXPECT_THAT(build_report({run}).verdict.state,
              HasSubstr("the host alice holds the others up, its ranks 10.0 ms late on average"));
  run.lateness_causes.clear();
  const Report without_causes = build_report({run});
  EXPECT_THAT(without_causes.findings, ::testing::Contains(::testing::Field(
                                           &Finding::text, HasSubstr("Rank 1 is its latest. Check the clock"))));
}

TEST(VerdictOfAReport, NamesTheHostOrTheRankThatCostsMore) {
  RunAnalysis run = analysed(4);
  run.critical_path.reset();
  run.hosts = {"alice", "bob"};
  run.per_rank[2].host = run.per_rank[3].host = "bob";
  run.lateness.judged = run.host_lateness.judged = true;
  run.lateness.late = {{.rank = 0, .behind_ns = 2e7, .share_of_step = 0.16, .p_alone = 1e-6},
                       {.rank = 3, .behind_ns = 1e7, .share_of_step = 0.08, .p_alone = 1e-6}};
  run.lateness_causes.resize(2);
  run.host_lateness.late = {{.rank = 1, .behind_ns = 1e7, .share_of_step = 0.08, .p_alone = 1e-6}};
  EXPECT_THAT(build_report({run}).verdict.state, HasSubstr("rank 0 on alice holds the others up"));
  run.host_lateness.late[0].share_of_step = 0.2;
  EXPECT_THAT(build_report({run}).verdict.state, HasSubstr("the host bob holds the others up"));
}

TEST(VerdictOfAReport, NamesAnIrregularRankAndAWrongClockWhereNobodyIsSlow) {
  RunAnalysis run = analysed(4);
  run.critical_path.reset();
  run.lateness.judged = run.irregularity.judged = true;
  run.irregularity.late = {{.rank = 3, .behind_ns = 5e6, .share_of_step = 0.04, .p_alone = 1e-6}};
  EXPECT_THAT(build_report({run}).verdict.state,
              HasSubstr("rank 3 on alice is irregular, not slow: it costs a step 5.00 ms on average"));
  run.irregularity.late.clear();
  run.wrong_clocks = {{.host = 0, .ahead_ns = 5e5}};
  EXPECT_THAT(build_report({run}).verdict.state,
              HasSubstr("the clock of alice seems off by 500 µs, and waits are wrong by as much"));
}

// One level holds for the ranks of all runs of a report.
TEST(VerdictOfAReport, AccusesLessInAReportOfSeveralRuns) {
  RunAnalysis run = analysed(2);
  run.lateness.judged = true;
  run.lateness.tests = 2;
  run.lateness.late = {{.rank = 1, .behind_ns = 1e7, .share_of_step = 0.083, .p_alone = 0.02}};
  EXPECT_EQ(build_report({run}).runs[0].lateness.late.size(), 1U);
  RunAnalysis other = run;
  other.lateness.late.clear();
  EXPECT_TRUE(build_report({run, other}).runs[0].lateness.late.empty());
}

// The work on the critical path is no test.
TEST(VerdictOfAReport, TheCriticalPathAloneNamesNobody) {
  RunAnalysis run = analysed(2);
  ASSERT_TRUE(run.critical_path);
  run.lateness.judged = true;
  run.lateness.late.clear();
  const Report report = build_report({run});
  EXPECT_THAT(report.verdict.state, HasSubstr("no rank is late beyond chance"));
  for (const Finding& finding : report.findings)
    EXPECT_THAT(finding.text, Not(HasSubstr("of the work on the critical path")));
}

Prediction prediction(const char* options, double ratio) {
  return {.title = options,
          .options = options,
          .step_s = ratio,
          .ci95 = Interval{ratio - 0.01, ratio + 0.01},
          .ratio = ratio,
          .per_image = ratio,
          .moved = {},
          .bound = false};
}

TEST(VerdictOfAReport, HasTwoSentencesThatAreShort) {
  RunAnalysis run = analysed(2);
  run.critical_path.reset();
  run.lateness.judged = true;
  run.lateness.late = {{.rank = 1, .behind_ns = 1e7, .share_of_step = 0.083, .p_alone = 0.0005}};
  run.lateness.iterations = 450;
  run.lateness_causes = {{.phase = PhaseExcess{.phase = Phase::preprocess}, .pattern = {.affected = 440}}};
  run.what_if = WhatIf{.step_s = 0.12, .predictions = {prediction("--relieve 1", 0.09)}};
  const Report late = build_report({run});
  EXPECT_EQ(late.verdict.state,
            "A step takes 120 ms (mean): rank 1 on alice holds the others up, 10.0 ms late in each step, because its "
            "preprocess takes longer.");
  EXPECT_EQ(late.verdict.change, "Change first: --relieve 1; predicted: 80.0 ms to 100 ms (95 %).");
  run.what_if->predictions.clear();
  run.lateness.late.clear();
  const Report nobody = build_report({run});
  EXPECT_THAT(nobody.verdict.state, ::testing::StartsWith("A step takes 120 ms (mean): "));
  EXPECT_THAT(nobody.verdict.state, ::testing::EndsWith("; no rank is late beyond chance."));
  const Report table =
      build_report({}, parse_runs_table("ranks,epochs,images,seconds\n1,1,100,100\n2,1,100,60\n", "t"));
  const Report scaling = two_jobs();
  for (const Report* report : {&late, &nobody, &table, &scaling}) expect_short_verdict(*report);
}

TEST(VerdictOfAReport, HasCommunicationInPlaceOfARankThatCostsLess) {
  RunAnalysis run = analysed(2);
  run.critical_path.reset();
  run.lateness.judged = true;
  run.lateness.iterations = 450;
  run.breakdown->wall_ns = 5'000'000'000;
  const std::string rank = ": rank 1 on alice holds the others up, 200 µs late";
  const std::string communication = ": communication, waiting included, takes 18.0 % of the wall time.";
  // Of a step, a rank takes 1 to 6 %; of the run, communication takes 0.9 s or, mostly in waiting for that rank, 0.1 s.
  // The rank that the verdict leaves out is a finding.
  for (const auto& [late, communication_ns, stands_alone] :
       {std::tuple(0.02, 900'000'000, true), std::tuple(0.01, 900'000'000, true), std::tuple(0.06, 900'000'000, false),
        std::tuple(0.02, 100'000'000, false)}) {
    run.lateness.late = {{.rank = 1, .behind_ns = 2e5, .share_of_step = late, .p_alone = 0.0005}};
    run.breakdown->rows = {{.phase = Phase::communication,
                            .inside_iterations = true,
                            .counts_as = CountsAs::overhead,
                            .ns = communication_ns}};
    const Report report = build_report({run});
    if (stands_alone) {
      EXPECT_THAT(report.verdict.state, ::testing::EndsWith(communication));
    } else {
      EXPECT_THAT(report.verdict.state, HasSubstr(rank));
    }
    EXPECT_TRUE(std::ranges::any_of(report.findings, [](const Finding& of) { return of.kind == "slow rank"; }));
  }
}

TEST(VerdictOfAReport, OfARunThatIsDamagedIsToGetTheWholeTrace) {
  Trace trace = make_trace({.ranks = 2});
  trace.ranks[1].damaged = true;
  trace.ranks[1].path = "r1.pace";
  trace.ranks[1].damage = "ends inside a block";
  const Report report = build_report({analyse_run(trace, "run")});
  EXPECT_THAT(report.verdict.state, HasSubstr("The trace is damaged (r1.pace: ends inside a block"));
  EXPECT_THAT(report.verdict.change, HasSubstr("First get the whole trace"));
}

TEST(VerdictOfAReport, OfATableAsksForTraces) {
  const Report report =
      build_report({}, parse_runs_table("ranks,epochs,images,seconds\n1,1,100,100\n2,1,100,60\n", "t"));
  EXPECT_THAT(report.verdict.state, HasSubstr("2 ranks trained 1.67 times as fast as one"));
  EXPECT_THAT(report.verdict.change, HasSubstr("record the runs"));
}

// The table below the verdict lists the relief of a rank even where chance may have made the rank slow.
TEST(VerdictOfAReport, DoesNotDenyTheReliefThatTheTableLists) {
  RunAnalysis run = analysed(2);
  run.critical_path.reset();
  run.lateness.late.clear();
  run.what_if = WhatIf{.step_s = 1, .replayed_s = 1};
  EXPECT_THAT(build_report({run}).verdict.change,
              HasSubstr("No change that can be predicted makes a step 1 % shorter"));
  run.what_if->predictions = {prediction("--balanced", 0.97), prediction("--relieve 1", 0.94)};
  run.lateness.judged = true;
  EXPECT_THAT(build_report({run}).verdict.change,
              HasSubstr("\"--relieve 1\" may save 6.0 %, but no rank is late beyond chance"));
  RunAnalysis late = run;
  late.lateness.late.push_back({.rank = 1, .p_alone = 1e-9});
  late.breakdown.reset();
  for (Prediction& of : late.what_if->predictions) of.ci95.reset();
  // The test of lateness needs fewer iterations than an interval of the step.
  EXPECT_EQ(build_report({late}).verdict.change, "Change first: --relieve 1; predicted: about 940 ms.");
  EXPECT_THAT(first_change_first(late).notes, ::testing::ElementsAre(HasSubstr("The first row is the change to make")));
  late.what_if->predictions = {prediction("--balanced", 0.97), prediction("--relieve 0", 0.94)};
  for (Prediction& of : late.what_if->predictions) of.ci95.reset();
  EXPECT_EQ(first_prediction(late), nullptr) << "another rank";
  run.lateness.judged = false;
  EXPECT_THAT(build_report({run}).verdict.change, HasSubstr("too short to tell whether a rank is slow"));
  run.what_if->predictions = {prediction("--faster '*conv*=2'", 0.8)};
  EXPECT_THAT(build_report({run}).verdict.change,
              HasSubstr("Only faster computation makes a step 1 % shorter: --faster '*conv*=2'"));
}

// What changes neither the results nor the machine comes first unless another change gains more than twice as much.
TEST(FirstPrediction, KeepsTheResultsOfTrainingWhereThatPays) {
  RunAnalysis run = analysed(2);
  run.critical_path.reset();
  run.what_if = WhatIf{.step_s = 1,
                       .replayed_s = 1,
                       .predictions = {prediction("--double-buffering", 0.4), prediction("--bucket-mb 1", 0.6)}};
  EXPECT_EQ(first_prediction(run)->options, "--bucket-mb 1");
  run.what_if->predictions[1].ratio = run.what_if->predictions[1].per_image = 0.8;
  EXPECT_EQ(first_prediction(run)->options, "--double-buffering");
  run.what_if->predictions[0].alters_training = true;
  EXPECT_THAT(build_report({run}).verdict.change, HasSubstr("(check the accuracy)"));
  run.what_if->predictions = {prediction("--relieve 1", 0.7), prediction("--balanced", 0.8),
                              prediction("--bucket-mb 1", 0.9)};
  run.lateness.late.clear();
  EXPECT_EQ(first_prediction(run)->options, "--bucket-mb 1") << "no rank is late beyond chance";
  run.lateness.late.emplace_back().rank = 1;
  EXPECT_EQ(first_prediction(run)->options, "--relieve 1");
  run.what_if->predictions.push_back(prediction("--relieve alice", 0.75));
  run.host_lateness.late.emplace_back().rank = 0;
  EXPECT_EQ(first_prediction(run)->options, "--relieve alice") << "all ranks of the host are late";
  run.what_if->predictions = {prediction("--ranks 4", 1.1)};
  EXPECT_EQ(first_prediction(run), nullptr);
}

// Larger collectives change neither, and come before what gains up to twice as much as they lose.
TEST(FirstPrediction, WaitsForLargerCollectives) {
  RunAnalysis run = analysed(2);
  run.critical_path.reset();
  run.lateness.late.clear();
  run.what_if = WhatIf{.step_s = 1, .replayed_s = 1, .predictions = {prediction("--bandwidth 2", 0.85)}};
  run.small_collectives = SmallCollectives{
      .operation = "MPI_Allreduce", .calls = 60, .fixed_ns = 400'000, .share_of_step = 0.2, .exposed_share = 0.07};
  EXPECT_EQ(first_prediction(run)->options, "--bandwidth 2");
  run.small_collectives->exposed_share = 0.08;
  EXPECT_EQ(first_prediction(run), nullptr);
  const Report report = build_report({run});
  EXPECT_EQ(report.verdict.change,
            "First send larger buckets: each of the 60 calls of MPI_Allreduce in an iteration costs 400 µs, however "
            "small it is.");
  EXPECT_THAT(first_change_first(run).notes,
              ::testing::ElementsAre(
                  "No row is advice: first the collectives should be larger, and no interval says what that saves."));
  const auto finding = std::ranges::find_if(
      report.findings, [](const Finding& of) { return of.text.starts_with("The collectives are too small"); });
  ASSERT_NE(finding, report.findings.end());
  EXPECT_THAT(finding->text, HasSubstr("; at most 8.0 % of a step is not hidden beside computation."));
  run.what_if->predictions = {prediction("--bucket-mb 1", 0.95)};
  EXPECT_EQ(first_prediction(run)->options, "--bucket-mb 1") << "a prediction with an interval";
  run.what_if->predictions.clear();
  run.small_collectives->operation = "MPI_Allgather";
  EXPECT_THAT(build_report({run}).verdict.change, HasSubstr("First join the collectives: each of the 60 calls"));
}

TEST(FirstPrediction, GainsForCertain) {
  RunAnalysis run = analysed(2);
  run.critical_path.reset();
  run.lateness.late.clear();
  run.what_if = WhatIf{.step_s = 1, .replayed_s = 1, .predictions = {prediction("--fp16", 0.9)}};
  EXPECT_EQ(first_prediction(run)->options, "--fp16");
  EXPECT_THAT(first_change_first(run).notes, ::testing::ElementsAre(HasSubstr("The first row is the change to make")));
  run.what_if->predictions[0].ci95->high = 1.01;
  EXPECT_EQ(first_prediction(run), nullptr);
  EXPECT_THAT(first_change_first(run).notes, ::testing::ElementsAre(HasSubstr("No row is advice")));
  EXPECT_THAT(build_report({run}).verdict.change,
              HasSubstr("\"--fp16\" may save 10.0 %, but its interval holds no change"));
  run.what_if->predictions[0].ci95.reset();
  run.what_if->predictions[0].error_unknown = true;
  EXPECT_EQ(first_prediction(run), nullptr);
  EXPECT_THAT(build_report({run}).verdict.change, HasSubstr("but its error is not known"));
}

TEST(Outline, RanksReasonsByTheirCost) {
  const Report report = two_jobs();
  const Outline outline = outline_of(report, Table::Place::documents);
  ASSERT_GE(outline.reasons.size(), 2U);
  double before = 1e9;
  for (const Finding& reason : outline.reasons) {
    EXPECT_LE(reason.cost_s.value_or(0), before);
    before = reason.cost_s.value_or(0);
  }
  EXPECT_NEAR(*outline.reasons.front().cost_s, 1.0, 1e-9) << "the start-up of the 2-rank run";
  ASSERT_FALSE(outline.picture.empty());
  EXPECT_EQ(outline.picture.front().kind, "speedup");
  EXPECT_EQ(outline.changes.front().id, "causes");
}

TEST(Outline, IsTheOrderOfEveryRendering) {
  const Report report = two_jobs();
  const auto expect_order = [&](const std::string& text, std::initializer_list<const char*> parts) {
    std::size_t at = 0;
    for (const char* part : parts) {
      const std::size_t found = text.find(part, at);
      ASSERT_NE(found, std::string::npos) << part;
      at = found;
    }
  };
  expect_order(checked_text(report), {"In these runs", "Speed-up of 2 ranks: from 2 down to", "Reasons",
                                      "Changes that pay", "Details of the scaling", "── run1"});
  expect_order(render_markdown(report), {"In these runs", "## The picture", "## Reasons", "## Changes that pay",
                                         "## Details of the scaling", "## run1"});
  expect_order(render_html(report),
               {"<h1>In these runs", "<section id=\"picture\">", "<section id=\"reasons\">", "<section id=\"changes\">",
                "<section id=\"details\">", "<section id=\"definitions\">"});
}

TEST(Glossary, HasADefinitionForEveryLinkOfThePage) {
  const std::string html = render_html(two_jobs());
  for (std::size_t at = 0; (at = html.find("href=\"#", at)) != std::string::npos;) {
    at += 7;
    const std::string id = html.substr(at, html.find('"', at) - at);
    EXPECT_THAT(html, HasSubstr(" id=\"" + id + "\"")) << id;
  }
  EXPECT_EQ(definition_id("S(N)"), "speed-up");
  EXPECT_EQ(definition_id("host"), "");
}

TEST(Sentences, AreSplitBehindTheFirst) {
  EXPECT_EQ(split_sentences("It takes 1.5 s. That is much. Yes.").first, "It takes 1.5 s.");
  EXPECT_EQ(split_sentences("It takes 1.5 s. That is much. Yes.").rest, "That is much. Yes.");
  EXPECT_EQ(split_sentences("One.").rest, "");
}

}  // namespace
}  // namespace paceline::analysis
