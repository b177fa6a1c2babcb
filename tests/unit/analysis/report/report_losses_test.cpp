// SPDX-License-Identifier: Apache-2.0
// What a report refuses and why: events that were lost, runs that did not end; and that repeats and measured causes
// are in its sentences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "analysis/report/section.h"
#include "analysis/report/sentences.h"
#include "tests/unit/analysis/checked_report.h"
#include "tests/unit/analysis/report_job.h"

namespace paceline::analysis {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t loss_ms = 1'000'000;

std::string said(const Report& report) {
  std::string all = report.headline + "\n";
  for (const auto& finding : report.findings) all += finding.text + "\n";
  return all;
}

// Rank 1 loses events in iterations 1 and 2 of 4, from 1130 to 1300 ms.
Trace with_losses(bool on_main_thread) {
  Trace trace = make_trace({.ranks = 2});
  Rank& rank = trace.ranks[1];
  rank.dropped["no_free_chunk"] = 60'000'000;
  const LostInterval loss{1130 * loss_ms, 1300 * loss_ms, 60'000'000, "no_free_chunk"};
  if (on_main_thread) {
    rank.tracks[0].lost.push_back(loss);
    rank.gaps.push_back({loss.start_ns, loss.end_ns, "events lost: the buffers were full", true});
  } else {
    Track helper;
    helper.lost.push_back(loss);
    rank.tracks.push_back(helper);
  }
  return trace;
}

TEST(LostEvents, RefuseTheBreakdownAndSpeedUpsAndSayWhy) {
  const Report report = build_report({analyse_run(make_trace({}), "one"), analyse_run(with_losses(true), "two")});
  const RunAnalysis& run = report.runs[1];
  EXPECT_FALSE(run.breakdown);
  EXPECT_TRUE(report.lost_time.empty());
  EXPECT_EQ(report.scaling.points.size(), 1U);
  EXPECT_EQ(run.iterations.count, 2U) << "0 and 3 are whole";
  EXPECT_EQ(run.iterations.median_ns, 120 * loss_ms);
  EXPECT_FALSE(run.images) << "how many iterations there were is not known";
  EXPECT_EQ(run.per_rank[1].wall_ns, (1605 - 170) * loss_ms);
  EXPECT_THAT(
      said(report),
      HasSubstr("60,000,000 events were lost on rank 1 because the buffers were full. They concern 170 ms of the main "
                "threads, and that time belongs to no phase. Iterations 1, 2 are affected and left out. The breakdown, "
                "the serial share and speed-ups depend on the lost events, so the report refuses them. Record again "
                "with a larger --buffer, or with --lossless"));
}

TEST(LostEvents, AreInEveryRendering) {
  const Report report = build_report({analyse_run(with_losses(true), "two")});
  const auto json = nlohmann::json::parse(render_json(report));
  const auto& run = json["runs"][0];
  EXPECT_FALSE(run.contains("breakdown"));
  EXPECT_EQ(run["refused"], nlohmann::json({"breakdown", "serial_share", "scaling"}));
  EXPECT_EQ(run["lost"]["events"], 60'000'000);
  EXPECT_EQ(run["lost"]["ranks"], nlohmann::json({1}));
  EXPECT_EQ(run["lost"]["main_thread_ns"], 170 * loss_ms);
  EXPECT_EQ(run["lost"]["iterations"], "1, 2");
  EXPECT_EQ(run["per_rank"][1]["lost_ns"], 170 * loss_ms);
  EXPECT_FALSE(run["per_rank"][0].contains("lost_ns"));
  EXPECT_FALSE(json.contains("scaling") && json["scaling"].contains("amdahl"));
  for (const std::string& text : {checked_text(report), render_markdown(report), render_html(report)}) {
    EXPECT_THAT(text, HasSubstr("where the time went is not known, because events were lost"));
    EXPECT_THAT(text, HasSubstr("events lost, in no phase"));
    EXPECT_THAT(text, Not(HasSubstr("What shrinks when ranks are added")));
  }
  EXPECT_THAT(render_csv(report), HasSubstr(",60000000,170000000,1\n"));
}

TEST(LostEvents, OfAHelperThreadLeaveTheBreakdown) {
  const Report report = build_report({analyse_run(make_trace({}), "one"), analyse_run(with_losses(false), "two")});
  EXPECT_TRUE(report.runs[1].breakdown);
  EXPECT_EQ(report.lost_time.size(), 1U);
  EXPECT_THAT(said(report),
              HasSubstr("60,000,000 events of helper threads of rank 1 were lost because the buffers were "
                        "full. The main threads are complete, so phases, iterations and the breakdown are valid"));
}

TEST(LostEvents, AtUnknownTimesRefuseIterationsToo) {
  Trace trace = make_trace({.ranks = 2});
  trace.ranks[0].dropped["no_free_chunk"] = 5;
  const Report report = build_report({analyse_run(trace, "two")});
  EXPECT_FALSE(report.runs[0].breakdown);
  EXPECT_EQ(report.runs[0].iterations.count, 0U);
  EXPECT_THAT(said(report), HasSubstr("The file does not record when"));
  EXPECT_THAT(said(report), Not(HasSubstr("No iterations were seen")));
}

TEST(LostEvents, ThatAreOnlyIncompleteRefuseNothing) {
  Trace trace = make_trace({.ranks = 2});
  trace.ranks[0].dropped = {{"payload_cut", 3}, {"too_many_names", 1}};
  const Report report = build_report({analyse_run(trace, "two")});
  EXPECT_TRUE(report.runs[0].breakdown);
  EXPECT_THAT(said(report),
              AllOf(HasSubstr("3 events lack a part of the NVTX payload."), HasSubstr("1 event has no name")));
}

TEST(ARunThatDidNotEnd, HasTheImagesOfItsIterationsAndNoSpeedUp) {
  Job planned{.ranks = 2};
  planned.config["images"] = 800;
  Trace killed = make_trace(planned);
  killed.ranks[1].ended = false;
  const Report report = build_report({analyse_run(make_trace({}), "one"), analyse_run(killed, "two")});
  EXPECT_EQ(report.runs[1].images, 4 * 64);
  EXPECT_EQ(report.scaling.points.size(), 1U);
  EXPECT_THAT(said(report), HasSubstr("The run is left out of the scaling section; its images are those of the 4 "
                                      "iterations that all ranks finished."));
  EXPECT_THAT(report.headline, Not(HasSubstr("times as fast")));
  EXPECT_EQ(nlohmann::json::parse(render_json(report))["runs"][1]["ended"], false);
}

// Three runs of 2 ranks, of which two end 100 and 200 ms later.
TEST(Repeats, AreAllInWhereTheTimeWentAndInTheMeasuredShare) {
  std::vector<RunAnalysis> runs;
  runs.push_back(analyse_run(make_trace({}), "one-a"));
  Trace longer = make_trace({});
  longer.ranks[0].end_ns += 400 * loss_ms;
  runs.push_back(analyse_run(longer, "one-b"));
  for (const int later : {0, 100, 200}) {
    Trace trace = make_trace({.ranks = 2});
    for (Rank& rank : trace.ranks) rank.end_ns += later * loss_ms;
    runs.push_back(analyse_run(trace, "two"));
  }
  const Report report = build_report(std::move(runs));
  ASSERT_EQ(report.lost_time.size(), 1U);
  const LostTime& lost = report.lost_time[0];
  EXPECT_THAT(lost.one, ElementsAre(0, 1));
  EXPECT_THAT(lost.many, ElementsAre(2, 3, 4));
  EXPECT_NEAR(lost.actual_s, 1.705, 1e-9);
  EXPECT_NEAR(lost.ideal_s, 1.1, 1e-9);
  EXPECT_NEAR(lost.actual_s - lost.ideal_s, lost.serial_s + lost.overhead_s + lost.slowdown_s, 1e-9);
  EXPECT_THAT(said(report), HasSubstr("2 ranks took 1.71 s (mean of 3 runs, 1.61 s to 1.81 s), and half of the 1-rank "
                                      "time is 1.10 s (mean of 2 runs, 1.00 s to 1.20 s)"));
  const auto measured = measured_serial_share(report, report.scaling.points.at(0));
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->runs, 2U);
  EXPECT_NEAR(measured->share, 0.5 * (1050.0 / 2000 + 1450.0 / 2400), 1e-9);
}

TEST(Causes, WaitsForACpuAreNamedBeforeMemory) {
  Report report = build_report({analyse_run(make_trace({}), "one"), analyse_run(make_trace({.ranks = 2}), "two")});
  ASSERT_EQ(report.lost_time.size(), 1U);
  LostTime lost = report.lost_time[0];
  lost.slowdown_s = 0.5;
  EXPECT_THAT(lost_time_text(report, lost), AllOf(HasSubstr("Waits for a CPU were not counted"), HasSubstr("memory")));
  report.runs[1].waiting_for_cpu = 0.7;
  EXPECT_THAT(lost_time_text(report, lost),
              AllOf(HasSubstr("The main threads waited 70.0 % of the time for a CPU"), Not(HasSubstr("memory"))));
  report.runs[1].waiting_for_cpu = 0.001;
  EXPECT_THAT(lost_time_text(report, lost), AllOf(HasSubstr("waited only 0.10 %"), HasSubstr("memory bandwidth")));
}

TEST(Causes, ARunOfOneRankWithoutACpuIsNoMeasureOfSpeedUp) {
  const auto said_of = [](std::optional<double> one, std::optional<double> two) {
    std::vector<RunAnalysis> runs = {analyse_run(make_trace({}), "one"), analyse_run(make_trace({.ranks = 2}), "two")};
    runs[0].waiting_for_cpu = one;
    runs[1].waiting_for_cpu = two;
    const Report report = build_report(std::move(runs));
    const bool too_high = said(report).find("is too high") != std::string::npos;
    EXPECT_EQ(report.headline.find("where 1 rank without enough CPUs took") != std::string::npos, too_high);
    EXPECT_EQ(report.verdict.state.find("as fast as one, which lacked CPUs") != std::string::npos, too_high)
        << report.verdict.state;
    return said(report);
  };
  EXPECT_THAT(said_of(0.23, 0.04),
              HasSubstr("is too high: in the run of 1 rank, the main thread waited 23.0 % of the time for a CPU, "
                        "against 4.0 % with 2 ranks. Record 1 rank again"));
  EXPECT_THAT(said_of(0.23, {}), HasSubstr("waited 23.0 % of the time for a CPU. Record 1 rank again"));
  for (const auto& [one, two] : {std::pair(0.04, 0.0), {0.23, 0.22}, {0.05, 0.9}}) {
    EXPECT_THAT(said_of(one, two), Not(HasSubstr("is too high"))) << one << " " << two;
  }
  EXPECT_THAT(said_of({}, 0.2), Not(HasSubstr("is too high")));
}

TEST(Json, HasNeitherNullNorInfinity) {
  Report report = build_report({analyse_run(make_trace({}), "one"), analyse_run(make_trace({.ranks = 2}), "two")});
  const double infinity = std::numeric_limits<double>::infinity();
  report.scaling.points.at(1).speedup_ci95 = Interval{0.5, infinity};
  report.scaling.speedup_limit = infinity;
  report.runs[0].accuracy = std::numeric_limits<double>::quiet_NaN();
  const std::string text = render_json(report);
  EXPECT_THAT(text, Not(HasSubstr("null")));
  const auto json = nlohmann::json::parse(text);
  EXPECT_FALSE(json["scaling"].contains("speedup_limit"));
  EXPECT_FALSE(json["scaling"]["points"][1].contains("speedup_ci95"));
  EXPECT_TRUE(json["scaling"]["points"][1].contains("speedup"));
}

TEST(Headline, SaysSlowerOnlyWhereTheIntervalDoes) {
  Report report = build_report({analyse_run(make_trace({}), "one"), analyse_run(make_trace({.ranks = 2}), "two")});
  ScalingPoint& two = report.scaling.points.at(1);
  two.speedup = 0.82;
  two.speedup_ci95 = Interval{0.49, 1.36};
  two.verdict = Verdict::undecided;
  write_findings(report);
  EXPECT_EQ(report.headline,
            "2 ranks are shown to be neither faster nor slower than one: 0.82 times its speed, 95 %: 0.49–1.36.");
  two.speedup_ci95 = Interval{0.7, 0.95};
  two.verdict = Verdict::slower;
  write_findings(report);
  EXPECT_THAT(report.headline, HasSubstr("2 ranks are slower than one: 0.82 times its speed"));
  two.speedup_ci95.reset();
  two.verdict = Verdict::unknown;
  write_findings(report);
  EXPECT_THAT(report.headline, HasSubstr("S(2) = 0.82 in the runs measured"));
}

TEST(Headline, NamesTheRunsWhereThereIsNoSpeedUp) {
  Job other{.ranks = 2};
  other.config["seed"] = 2;
  other.config["dtype"] = "bf16";
  const Report report = build_report({analyse_run(make_trace({.ranks = 2}), "a"), analyse_run(make_trace(other), "b")});
  EXPECT_THAT(report.headline, AllOf(HasSubstr("On 2 ranks"), HasSubstr("dtype bf16"), HasSubstr("may be noise")));
}

}  // namespace
}  // namespace paceline::analysis
