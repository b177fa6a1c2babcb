// SPDX-License-Identifier: Apache-2.0
// The findings explain the figures in sentences.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/report/build.h"
#include "analysis/report/outline.h"
#include "analysis/report/render.h"
#include "analysis/scaling/runs_table.h"
#include "tests/unit/analysis/checked_report.h"
#include "tests/unit/analysis/report_job.h"

namespace paceline::analysis {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Report of_jobs(std::initializer_list<Job> jobs) {
  std::vector<RunAnalysis> runs;
  for (const auto& job : jobs) runs.push_back(analyse_run(make_trace(job), "ranks-" + std::to_string(job.ranks)));
  return build_report(std::move(runs));
}

std::string sentences(const Report& report) {
  std::string all;
  for (const auto& finding : report.findings) all += finding.text + "\n";
  return all;
}

std::string sentences_of_table(const char* text) { return sentences(build_report({}, parse_runs_table(text, "t"))); }

TEST(Findings, OfThePublishedTable) {
  const std::string said = sentences(build_report({}, read_runs_table(PACELINE_TEST_DATA "/reedbush-2018.csv")));
  EXPECT_THAT(said, HasSubstr("S(2) = 1.694"));
  EXPECT_THAT(said, HasSubstr("S(4) = 3.350"));
  EXPECT_THAT(said, HasSubstr("S(2) = 1.845"));
  EXPECT_THAT(said, HasSubstr("e(2) = 0.180"));
  EXPECT_THAT(said, HasSubstr("e(4) = 0.0647"));
  EXPECT_THAT(said, HasSubstr("program: chainer → chainermn"));
  EXPECT_THAT(said, HasSubstr("1 rank: 47.850 s an epoch and 1.77 s before and beside training"));
  EXPECT_THAT(said, HasSubstr("2 ranks: 25.738 s an epoch and 11.06 s before and beside training"));
  EXPECT_THAT(said, HasSubstr("tends to 47.850/25.738 = 1.859"));
  EXPECT_THAT(said, HasSubstr("The 11 s that the 2-rank program spends before and beside training, against 1.8 s on 1 "
                              "rank, explain why the run of 4 epochs shows only 1.69."));
  EXPECT_THAT(said,
              HasSubstr("No Amdahl curve is fitted through 1, 2 and 4 ranks at 4 epochs: the runs differ in program"));
  EXPECT_THAT(said, HasSubstr("Karp–Flatt's e falls from 0.180 at 2 ranks to 0.0647 at 4"));
  EXPECT_THAT(said, HasSubstr("would give S(2) = 1.87 where 1.69 was measured"));
  EXPECT_THAT(said, HasSubstr("The 4-rank run does not belong to the series."));
}

TEST(Findings, OfATableOfOneSeries) {
  const std::string said = sentences_of_table("ranks,epochs,images,seconds\n1,1,100,100\n2,1,100,60\n4,1,100,40\n");
  EXPECT_THAT(said, HasSubstr("Amdahl's law through 1, 2 and 4 ranks at 1 epoch: serial share s = 0.2000"));
  EXPECT_THAT(said, HasSubstr("which limits the speed-up to 5.00 on any number of ranks"));
  EXPECT_THAT(said, HasSubstr("weak evidence"));
  EXPECT_THAT(said, HasSubstr("no intervals can be given"));
  EXPECT_THAT(said, Not(HasSubstr("No Amdahl curve")));
}

TEST(Findings, NameACurveThatMissesTheRunsWithoutBlamingNoiseOrRuns) {
  const std::string said = sentences_of_table("ranks,epochs,images,seconds\n1,1,100,100\n2,1,100,60\n4,1,100,27\n");
  EXPECT_THAT(said,
              AllOf(HasSubstr("The curve misses a run by"), HasSubstr("Whether noise explains that is not known")));
}

TEST(Findings, OfOneRankCountExplainThatThereIsNoFit) {
  EXPECT_THAT(
      sentences_of_table("ranks,epochs,images,seconds\n4,1,100,100\n"),
      HasSubstr("No scaling figures: all runs have 4 ranks, and a speed-up or a law needs at least two rank counts. "
                "Run the same work on 1 rank as well."));
  EXPECT_THAT(sentences(of_jobs({{.ranks = 1}})), HasSubstr("all runs have 1 rank"));
}

TEST(Findings, NameUnequalWork) {
  EXPECT_THAT(sentences_of_table("ranks,epochs,images,seconds\n1,1,100,100\n2,1,400,100\n"),
              HasSubstr("No speed-up for 2 ranks at 1 epoch (400 images): there is no run of 1 rank with equal work."));
  const std::string of_two =
      sentences_of_table("ranks,epochs,images,seconds,dtype\n1,1,100,100,f32\n2,1,400,100,f32\n2,1,400,90,f16\n");
  const std::size_t first = of_two.find("No speed-up for 2 ranks");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(of_two.find("No speed-up for 2 ranks", first + 1), std::string::npos) << of_two;
}

TEST(Findings, MoreThanNTimesAsFastIsDoubted) {
  EXPECT_THAT(sentences_of_table("ranks,epochs,images,seconds\n1,1,100,100\n2,1,100,45\n"), HasSubstr("is above 2"));
}

TEST(Findings, NameRanksThatSlowTheJobDown) {
  const std::string said = sentences_of_table("ranks,epochs,images,seconds\n1,1,100,100\n2,1,100,130\n");
  EXPECT_THAT(said, Not(HasSubstr("slower than one"))) << "nothing is known of the noise";
  EXPECT_THAT(said,
              HasSubstr("In these runs, 2 ranks took longer than one. Whether that is more than noise is not known."));
  EXPECT_THAT(said, HasSubstr("Amdahl's law cannot describe 1 and 2 ranks at 1 epoch"));
}

TEST(Findings, ACurveOfAnEntirelySerialJobIsALaw) {
  const std::string said = sentences_of_table("ranks,epochs,images,seconds\n1,1,100,100\n2,1,100,100\n");
  EXPECT_THAT(said, Not(HasSubstr("cannot describe")));
  EXPECT_THAT(said, HasSubstr("serial share s = 1.0000"));
}

TEST(Findings, ClaimFasterOrSlowerOnlyWhereTheIntervalExcludesEquality) {
  const auto headline = [](const char* of_two) {
    return build_report({}, parse_runs_table(fmt::format("ranks,epochs,images,seconds\n1,1,9,100\n1,1,9,101\n1,1,9,99\n"
                                                         "{}",
                                                         of_two),
                                             "t"))
        .headline;
  };
  EXPECT_THAT(headline("2,1,9,60\n2,1,9,61\n2,1,9,59\n"), HasSubstr("2 ranks train 1.67 times as fast as one"));
  EXPECT_THAT(headline("2,1,9,130\n2,1,9,131\n2,1,9,129\n"), HasSubstr("2 ranks are slower than one"));
  EXPECT_THAT(headline("2,1,9,130\n2,1,9,90\n2,1,9,140\n"), HasSubstr("shown to be neither faster nor slower"));
  EXPECT_THAT(headline("2,1,9,130\n"), HasSubstr("S(2) = 0.77 in the runs measured"));
}

TEST(Findings, ASmallExcessOverNIsNoFinding) {
  EXPECT_THAT(sentences_of_table("ranks,epochs,images,seconds\n1,1,9,100\n1,1,9,101\n1,1,9,99\n2,1,9,49.99\n"
                                 "2,1,9,50.4\n2,1,9,49.6\n"),
              Not(HasSubstr("is above 2")));
  EXPECT_THAT(sentences_of_table("ranks,epochs,images,seconds\n1,1,100,100\n2,1,100,49.999\n"),
              Not(HasSubstr("is above 2")));
}

// A serial share of nearly 0, a longer run that was shorter, and coherency costs of nearly 0.
TEST(Findings, DegenerateFitsPrintNoLimits) {
  const std::string said = sentences_of_table(
      "ranks,epochs,images,seconds\n1,1,100,100\n2,1,100,50.0000000001\n4,1,100,25.00000001\n1,2,200,90\n");
  EXPECT_THAT(said, Not(HasSubstr("limits the speed-up")));
  EXPECT_THAT(said, Not(HasSubstr("its peak at")));
  EXPECT_THAT(said, HasSubstr("The runs do not show where its peak is"));
  EXPECT_THAT(said, HasSubstr("No time model for 1 rank: the runs of more epochs did not take longer."));
}

TEST(Findings, ExplainWhatTheIntervalsRestOn) {
  EXPECT_THAT(sentences_of_table("ranks,epochs,images,seconds\n1,1,9,100\n1,1,9,101\n2,1,9,60\n2,1,9,61\n"),
              HasSubstr("There are two runs of 1 and 2 ranks, which are too few for an interval"));
  std::vector<ScalingRun> runs(2);
  for (int n : {1, 2}) {
    ScalingRun& run = runs[static_cast<std::size_t>(n - 1)];
    run.ranks = n, run.images = 6400;
    for (int i = 0; i < 200; ++i) run.seconds += run.iteration_seconds.emplace_back(0.1 / n + 0.001 * (i * 37 % 19));
  }
  EXPECT_THAT(sentences(build_report({}, runs)),
              HasSubstr("They cover the variation within the run, but not the spread between runs."));
}

TEST(Findings, OfWeakScaling) {
  const Report report =
      build_report({}, parse_runs_table("ranks,epochs,images,seconds\n1,1,100,100\n2,2,200,104\n4,4,400,112\n", "t"));
  EXPECT_THAT(report.headline,
              HasSubstr("Weak scaling: 4 ranks train 4 times the images of one in 1.12 times its time"));
  EXPECT_THAT(sentences(report), AllOf(HasSubstr("weak efficiency 96.2 %, scaled speed-up 1.923"),
                                       HasSubstr("Gustafson's law through 1, 2 and 4 ranks: the share s = 0.13")));
  const auto json = nlohmann::json::parse(render_json(report))["scaling"];
  EXPECT_NEAR(json["points"][1]["weak_efficiency"].get<double>(), 100.0 / 104, 1e-12);
  EXPECT_NEAR(json["gustafson"][0]["serial_fraction"].get<double>(), 0.1363, 1e-3);
}

TEST(Findings, OfEqualRankCounts) {
  const Report report = build_report(
      {}, parse_runs_table("ranks,epochs,images,seconds,communicator\n2,1,100,66,mpi\n2,1,100,60,ring\n", "t"));
  EXPECT_THAT(report.headline, HasSubstr("On 2 ranks at 1 epoch, communicator ring takes 60.00 s and communicator mpi "
                                         "takes 66.00 s: the ratio of their speeds is 1.100, which may be noise."));
  EXPECT_NEAR(nlohmann::json::parse(render_json(report))["scaling"]["comparisons"][0]["ratio"].get<double>(), 1.1,
              1e-12);
}

TEST(Findings, ThousandsOfConfigurationsAreSummarised) {
  std::string table = "ranks,epochs,images,seconds,batch\n";
  for (int i = 0; i < 3000; ++i) table += fmt::format("{},1,100,{},{}\n", 1 + i % 2, 100 + i % 7, i / 2);
  const Report report = build_report({}, parse_runs_table(table, "t"));
  EXPECT_LT(report.findings.size(), 200u);
  EXPECT_THAT(sentences(report), HasSubstr("sentences of the kinds above are left out here"));
  const std::string text = checked_text(report);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 1200);
  EXPECT_THAT(text, HasSubstr("… and 2,950 more"));
  EXPECT_EQ(nlohmann::json::parse(render_json(report))["scaling"]["points"].size(), 3000u);
}

TEST(Findings, SpeedBoughtWithAccuracy) {
  const std::string said =
      sentences_of_table("ranks,epochs,images,seconds,accuracy\n1,1,100,100,0.93\n2,1,100,60,0.88\n");
  EXPECT_THAT(said, HasSubstr("Speed bought with accuracy: 2 ranks are 1.67 times as fast in the runs measured but "
                              "reach 88.0 % where 1 rank "
                              "reaches 93.0 %."));
  EXPECT_THAT(sentences(of_jobs({{.ranks = 1, .accuracy = 0.95}, {.ranks = 2, .accuracy = 0.80}})),
              AllOf(HasSubstr("Speed bought with accuracy"), HasSubstr("is never reached by 2 ranks")));
}

// 2 points less: with 10,000 test images 1.96 × √(0.93 · 0.07 / 10⁴ + 0.91 · 0.09 / 10⁴) = 0.75 points are chance, with
// 1,000 they are 2.4.
TEST(Findings, AccuracyIsLostOnlyBeyondWhatTheTestImagesExplain) {
  const auto said = [](const char* images) {
    return sentences_of_table(fmt::format("ranks,epochs,images,seconds,accuracy,test_images\n1,1,100,100,0.93,{0}\n"
                                          "2,1,100,60,0.91,{0}\n",
                                          images)
                                  .c_str());
  };
  EXPECT_THAT(
      said("10000"),
      HasSubstr("Speed bought with accuracy: 2 ranks are 1.67 times as fast in the runs measured but reach 91.0 % "
                "where 1 rank reaches 93.0 %, more than the 0.8 points that the choice of test "
                "images explains (95 %)."));
  EXPECT_THAT(said("1000"), Not(HasSubstr("Speed bought with accuracy")));
  EXPECT_THAT(said("unknown"), HasSubstr("reaches 93.0 %. More ranks")) << "then one point is the limit";
  // Less than a point, and yet no chance with a million images.
  EXPECT_THAT(sentences_of_table("ranks,epochs,images,seconds,accuracy,test_images\n1,1,100,100,0.93,1000000\n"
                                 "2,1,100,60,0.925,1000000\n"),
              HasSubstr("Speed bought with accuracy"));
}

TEST(Findings, NameASlowRankOnlyWhereTheTestOfItsLatenessDoes) {
  RunAnalysis run = analyse_run(make_trace({.ranks = 2}), "run");
  EXPECT_THAT(
      sentences(build_report({run})),
      HasSubstr("The ranks were not tested for lateness: after warm-up, 3 iterations have collectives of all ranks"));
  run.lateness.autocorrelation_time = 40.6;
  run.lateness.iterations = 540;
  run.lateness.tests = 2;
  EXPECT_THAT(
      sentences(build_report({run})),
      HasSubstr("Only a rank that is clearly late would be named: after warm-up, 540 iterations have collectives of "
                "all ranks, too few for an autocorrelation time of 41, which asks for some 280 more."));
  run.lateness.iterations = 70;  // which say little of their autocorrelation
  EXPECT_THAT(sentences(build_report({run})), HasSubstr("too few for an autocorrelation time of 41."));
  run.lateness.judged = true;
  run.lateness.iterations = 400;
  run.lateness.block = 12;
  EXPECT_THAT(sentences(build_report({run})),
              AllOf(Not(HasSubstr("not tested")), Not(HasSubstr("would be named")), Not(HasSubstr("Rank 1 on"))));
  run.lateness.late = {{.rank = 1, .behind_ns = 1e7, .share_of_step = 0.083, .p_alone = 0.0005}};
  run.lateness_table.step_ns.assign(400, 120e6);
  EXPECT_THAT(
      sentences(build_report({run})),
      HasSubstr("Rank 1 on alice arrived at the collectives of an iteration 10.0 ms later than the other rank (mean "
                "over 400 iterations). That costs 8.3 % of a step, 3.98 rank-seconds of waiting in all. By chance, "
                "fewer than 1 of 1,000 reports of balanced runs would accuse anybody this clearly (Student's t of "
                "blocks of 12 iterations)."));
  run.lateness.judged = false;  // in 6 to 20 autocorrelation times, and in fewer
  EXPECT_THAT(sentences(build_report({run})), HasSubstr(" this clearly (Student's t of blocks of 12 iterations)."));
  run.lateness.block = 1;
  EXPECT_THAT(sentences(build_report({run})),
              HasSubstr(" this clearly (Student's t, the whole run as one observation, because it is short for its "
                        "autocorrelation)."));
  run.lateness.iterations = 17;
  EXPECT_THAT(sentences(build_report({run})), HasSubstr(" this clearly (Cantelli's inequality, the whole run as"));
}

TEST(Findings, NameASlowHostInsteadOfItsRanks) {
  RunAnalysis run = analyse_run(make_trace({.ranks = 4}), "run");
  run.per_rank[2].host = run.per_rank[3].host = "bob";
  run.hosts = {"alice", "bob"};
  const LateRank late{.rank = 3, .behind_ns = 2e7, .share_of_step = 0.1, .p_alone = 1e-6};
  run.lateness = {
      .iterations = 400, .autocorrelation_time = 1, .block = 12, .judged = true, .tests = 4, .late = {late}};
  run.lateness_causes = {
      {.phase = PhaseExcess{.phase = Phase::forward, .ns = 2e7, .share_of_delay = 1}, .pattern = {}}};
  run.host_lateness = run.lateness;
  run.host_lateness.late = {{.rank = 1, .behind_ns = 1.5e7, .share_of_step = 0.08, .p_alone = 0.00007}};
  run.lateness_table.step_ns.assign(400, 120e6);
  const Report report = build_report({run});
  EXPECT_THAT(
      sentences(report),
      AllOf(HasSubstr("The host bob is slow: its 2 ranks arrived at the collectives of an iteration 15.0 ms later than "
                      "those of the other host (median of a host's ranks, mean over 400 iterations). That costs 8.0 % "
                      "of a step, 7.68 rank-seconds of waiting in all. By chance, fewer than 2 of 1,000 reports of "
                      "balanced runs would accuse anybody this clearly. "
                      "Rank 3 is its latest. Its forward takes 20.0 ms longer (100.0 % of the delay). Check the clock"),
            Not(HasSubstr("Rank 3 on bob"))));
}

TEST(Findings, ClocksThatAreTooFarApartLeaveLatenessUnknown) {
  RunAnalysis run = analyse_run(make_trace({.ranks = 2}), "run");
  run.critical_path.reset();
  run.lateness.judged = true;
  run.clock_error_ns = 2e9;
  const std::string why = "he clocks of the ranks may differ by 2.00 s, too much to tell whether a rank is slow";
  const Report report = build_report({run});
  EXPECT_THAT(sentences(report), HasSubstr("last rank to arrive. T" + why + "."));
  EXPECT_THAT(report.verdict.state, HasSubstr("; t" + why));
  run.clock_error_ns = 1e5;
  EXPECT_THAT(sentences(build_report({run})), Not(HasSubstr("the clocks of the ranks")));
}

TEST(Findings, OfTwoTracesSayWhereTheSpeedUpWent) {
  const Report report = of_jobs({{.ranks = 1}, {.ranks = 2}});
  ASSERT_EQ(report.lost_time.size(), 1u);
  const LostTime& lost = report.lost_time[0];
  EXPECT_NEAR(lost.ideal_s, 1, 1e-12);
  EXPECT_NEAR(lost.actual_s, 1.605, 1e-12);
  EXPECT_NEAR(lost.serial_s, 0.525, 1e-12);
  EXPECT_NEAR(lost.overhead_s, 0.06, 1e-12);
  EXPECT_NEAR(lost.waiting_s, 0.02, 1e-12);
  EXPECT_NEAR(lost.slowdown_s, 0.02, 1e-12);
  EXPECT_NEAR(*report.scaling.points[1].speedup, 2000.0 / 1605, 1e-12);
  EXPECT_NEAR(report.scaling.fits.at(0).serial_fraction, 1605.0 / 1000 - 1, 1e-8);
  const std::string said = sentences(report);
  EXPECT_THAT(
      said, HasSubstr("2 ranks took 1.61 s, and half of the 1-rank run is 1.00 s. Of the difference of 605 ms, serial "
                      "work that does not shrink takes 525 ms, communication takes 60.0 ms (20.0 ms of it waiting"));
  EXPECT_THAT(said, HasSubstr("shorter than 20 autocorrelation times of its iterations, so no interval is given"));
}

TEST(Findings, RunsOfAnotherModelAreNotOneSeries) {
  Job other{.ranks = 2};
  other.config["model"] = "vgg16_bn";
  const Report report = of_jobs({{.ranks = 1}, other});
  EXPECT_TRUE(report.scaling.fits.empty());
  EXPECT_THAT(
      sentences(report),
      HasSubstr("No speed-up for 2 ranks at 1 epoch: the run of 1 rank does other work (model: resnet18 → vgg16_bn)."));
}

TEST(Findings, UnequalBatchesAreNamedAndAllImagesCounted) {
  const Report report = of_jobs({{.ranks = 2, .batches = {16, 32}}});
  const auto found = std::ranges::find(report.findings, "unequal batches", &Finding::kind);
  ASSERT_NE(found, report.findings.end());
  EXPECT_EQ(found->severity, Severity::warning);
  EXPECT_THAT(found->text,
              HasSubstr("unequal batches: 16 images of an iteration on rank 0, 32 on rank 1. Where ranks compute"));
  ASSERT_EQ(found->places.size(), 1u);
  EXPECT_EQ(found->places[0].rank, 1u);

  const RunAnalysis& run = report.runs[0];
  EXPECT_EQ(run.images, 4 * (16 + 32));
  EXPECT_EQ(run.config.at("batch_per_rank").text, "[16,32]");
  EXPECT_EQ(run.config.at("global_batch").text, "48");
  EXPECT_THAT(render_text(report), AllOf(HasSubstr("batch 16 to 32 per rank"), Not(HasSubstr("batch 16 per rank"))));

  EXPECT_THAT(sentences(of_jobs({{.ranks = 2, .batches = {16, 16}}})), Not(HasSubstr("unequal")));
}

TEST(Findings, BatchesThatAreAccumulatedToEqualImagesAreNotUnequal) {
  Job job{.ranks = 2, .batches = {16, 32}};
  job.accumulate = {4, 2};
  const Report report = of_jobs({job});
  EXPECT_THAT(sentences(report), Not(HasSubstr("unequal")));
  EXPECT_EQ(report.runs[0].config.at("batch_per_rank").text, "[16,32]");
  EXPECT_EQ(report.runs[0].images, 4 * 128);
}

TEST(Findings, SeedGlobalBatchAndTheOneRanksCommunicatorDoNotPartASeries) {
  Job other{.ranks = 2};
  other.config["seed"] = 2;
  EXPECT_EQ(of_jobs({{.ranks = 1}, other}).scaling.fits.size(), 1u);
}

TEST(Findings, ACutTraceIsAProblemAndLeftOutOfScaling) {
  Trace trace = make_trace({.ranks = 2});
  trace.ranks[1].damaged = true;
  trace.ranks[1].path = "r1.pace";
  trace.ranks[1].damage = "ends inside a block";
  const Report report = build_report({analyse_run(make_trace({.ranks = 1}), "a"), analyse_run(trace, "b")});
  EXPECT_EQ(report.findings.at(0).severity, Severity::problem);
  EXPECT_THAT(report.findings.at(0).text, HasSubstr("r1.pace: ends inside a block"));
  EXPECT_EQ(report.scaling.points.size(), 1u);
}

// Two ranks whose communication (gloo's, say) no source sees; they use MPI only to start and to end.
TEST(Findings, DoNotCountUnobservedCommunicationAsZero) {
  TraceBuilder builder;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = builder.add_rank(r, 2);
    TrackBuilder& main = rank.add_main_thread();
    main.add_slice(0, 5, "MPI_Init", "mpi", "management");
    rank.info().mpi_events = 1;
    for (int i = 0; i < 3; ++i) {
      main.push(10 * i + 10, "step " + std::to_string(i));
      main.add_slice(10 * i + 10, 10 * i + 15, "forward");
      main.pop(10 * i + 20);
    }
  }
  const Report report = build_report({analyse_run(builder.finish(), "gloo")});
  EXPECT_FALSE(report.runs[0].communication_observed);
  EXPECT_THAT(sentences(report), HasSubstr("Communication was not observed"));
  EXPECT_FALSE(report.runs[0].communication_share_of_step);
  EXPECT_TRUE(report.lost_time.empty());
  const auto json = nlohmann::json::parse(render_json(report))["runs"][0];
  EXPECT_FALSE(json["communication_observed"].get<bool>());
  EXPECT_FALSE(json["breakdown"].contains("overhead_ns"));
  for (const auto& rank : json["per_rank"]) EXPECT_FALSE(rank["phases"].contains("communication"));
  for (const std::string& text : {checked_text(report), render_html(report)}) {
    EXPECT_THAT(text, HasSubstr("Communication was not observed"));
    EXPECT_THAT(text, HasSubstr("not observed"));
  }
}

// A barrier was recorded; of 300 more collectives only the number is known.
TEST(Findings, DoNotTakeCountedCollectivesForNone) {
  for (const int unobserved : {0, 300}) {
    TraceBuilder builder;
    for (int r = 0; r < 2; ++r) {
      TrackBuilder& main = builder.add_rank(r, 2).add_main_thread();
      main.add_slice(0, 5, "gloo:barrier", "torch", "collective");
      for (int i = 0; i < 3; ++i) {
        main.push(10 * i + 10, "step " + std::to_string(i));
        main.add_slice(10 * i + 10, 10 * i + 15, "forward");
        main.pop(10 * i + 20);
      }
      if (unobserved == 0) continue;
      const auto mark = main.add_mark(50, "collectives that were not observed", "torch", "unobserved");
      main.mark_argument(mark, "payload", unobserved);
    }
    const Report report = build_report({analyse_run(builder.finish(), "gloo")});
    EXPECT_EQ(report.runs[0].communication_observed, unobserved == 0);
    EXPECT_EQ(report.runs[0].efficiencies.has_value(), unobserved == 0);
    const std::string said = sentences(report) + report.verdict.state;
    EXPECT_EQ(said.find("300 collectives of a rank passed no function of Python") != said.npos, unobserved > 0) << said;
  }
}

// Amdahl's law is applied to the communication of the main threads only if nothing communicates on GPUs beside them.
TEST(Findings, CommunicationBesideGpusIsNoSerialShare) {
  for (const bool has_gpus : {false, true}) {
    TraceBuilder builder;
    for (int r = 0; r < 2; ++r) {
      RankBuilder& rank = builder.add_rank(r, 2);
      TrackBuilder& main = rank.add_main_thread();
      for (int i = 0; i < 3; ++i) {
        main.push(1000 * i, "step " + std::to_string(i));
        main.add_slice(1000 * i, 1000 * i + 800, "forward");
        main.add_slice(1000 * i + 800, 1000 * i + 1000, "MPI_Allreduce", "mpi", "collective");
        main.pop(1000 * i + 1000);
      }
      if (has_gpus)
        rank.add_track(TrackKind::stream, "GPU 0 stream 7", 7).add_slice(10, 500, "square", "cuda", "kernel");
    }
    const Report report = build_report({analyse_run(builder.finish(), "run")});
    const std::string said = sentences(report);
    EXPECT_EQ(said.find("serial share of Amdahl's law") == said.npos, has_gpus) << said;
    for (const Finding& reason : outline_of(report, Table::Place::terminal).reasons) {
      EXPECT_EQ(reason.text.find("Amdahl"), std::string::npos) << "what lectures say is no reason: " << reason.text;
    }
    EXPECT_EQ(said.find("Communication that runs on GPUs is not included") != said.npos, has_gpus) << said;
  }
}

TEST(Findings, ARunOfCopiesIsToldToCopyLess) {
  TraceBuilder builder;
  RankBuilder& rank = builder.add_rank(0);
  rank.add_main_thread().add_slice(0, 1000, "work");
  TrackBuilder& stream = rank.add_track(TrackKind::stream, "GPU 0 stream 7", 7);
  stream.add_slice(0, 900, "Memcpy HtoD", "cuda", "memcpy");
  stream.add_slice(900, 950, "square", "cuda", "kernel");
  const Report report = build_report({analyse_run(builder.finish(), "run")});
  EXPECT_THAT(report.verdict.state, HasSubstr("copies of the GPUs take 900 ns, 900 ns of it Memcpy HtoD"));
  EXPECT_EQ(report.verdict.change, "First copy less, or beside the computation, which takes 50.0 ns.");
}

// The same with one barrier: it was looked, and there was next to nothing.
TEST(Findings, ASingleCollectiveIsCommunicationObserved) {
  TraceBuilder builder;
  for (int r = 0; r < 2; ++r) {
    TrackBuilder& main = builder.add_rank(r, 2).add_main_thread();
    main.add_slice(0, 5, "step 0");
    main.add_slice(6, 6, "MPI_Barrier", "mpi", "collective");
  }
  const RunAnalysis run = analyse_run(builder.finish(), "mpi");
  EXPECT_TRUE(run.communication_observed);
  EXPECT_EQ(run.communication_share_of_step, 0);
}

}  // namespace
}  // namespace paceline::analysis
