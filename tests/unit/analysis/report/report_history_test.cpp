// SPDX-License-Identifier: Apache-2.0
// The summary of a report, and many runs beside each other.
#include <gmock/gmock.h>

#include "analysis/report/build.h"
#include "analysis/report/history.h"
#include "analysis/report/render.h"
#include "profiler/format/error.h"
#include "tests/unit/analysis/checked_report.h"
#include "tests/unit/analysis/report_job.h"

namespace paceline::analysis {
namespace {

using testing::HasSubstr;
using testing::Not;

Report report_of(const Job& job, const char* path) { return build_report({analyse_run(make_trace(job), path)}); }

TEST(Summary, HasTheVerdictTheFiguresAndTheReasonsButNoDetails) {
  const Report report = report_of({.ranks = 2}, "run");
  for (const std::string& text : {render_text(report, Extent::summary), render_markdown(report, Extent::summary)}) {
    EXPECT_THAT(text, HasSubstr("useful work"));
    EXPECT_THAT(text, HasSubstr("Main figures"));
    EXPECT_THAT(text, HasSubstr("Reasons"));
    EXPECT_THAT(text, Not(HasSubstr("Phases of each rank")));
    EXPECT_LT(std::ranges::count(text, '\n'), 60) << "it fits a page";
  }
  const std::string page = render_html(report, Extent::summary);
  EXPECT_THAT(page, HasSubstr("\"kind\":\"iterations\""));
  EXPECT_THAT(page, Not(HasSubstr("<h2>Details</h2>")));
  EXPECT_THAT(page, Not(HasSubstr("<a class=\"def\""))) << "no link leads to definitions that are not there";
}

Json recorded(Job job, const char* date, const char* commit, const char* path) {
  job.config["commit"] = commit;
  Json report = report_json(report_of(job, path));
  if (*date != '\0') report["runs"][0]["recorded"] = date;
  return report;
}

TEST(History, OrdersRunsByDateAndCallsThemByCommit) {
  std::vector<std::string> without;
  std::vector<HistoryRow> rows;
  for (const Json& report : {recorded({.ranks = 2}, "2026-11-03T10:00:00Z", "ccc", "third"),
                             recorded({.ranks = 1}, "2026-11-01T10:00:00Z", "aaa", "first")}) {
    for (HistoryRow& row : history_rows(report, "f", without)) rows.push_back(std::move(row));
  }
  const History history = history_of(std::move(rows), "");
  EXPECT_EQ(history.by, "commit");
  ASSERT_EQ(history.rows.size(), 2U);
  EXPECT_EQ(history.rows[0].label, "aaa");
  EXPECT_EQ(history.rows[1].run, "third");
  EXPECT_DOUBLE_EQ(history.rows[1].step_ms, 120);
  double sum = 0;
  for (const auto& [phase, part] : history.rows[1].phases_ms) sum += part;
  EXPECT_NEAR(sum, 120, 1e-6) << "the phases add up to the step";
  const std::string text = render_history_text(history);
  EXPECT_THAT(text, HasSubstr("The last of 2 runs, ccc, takes 120 ms for a step (median)"));
  EXPECT_THAT(render_history_markdown(history), HasSubstr("| commit | run |"));
  const std::string page = render_history_html(history);
  EXPECT_THAT(page, HasSubstr("\"kind\":\"history\""));
  EXPECT_THAT(page, HasSubstr("\"labels\":[\"aaa\",\"ccc\"]"));
}

TEST(History, WhatWasLostIsAShareOfTheWallTime) {
  Json report = recorded({.ranks = 2}, "", "aaa", "run");
  Json& run = report["runs"][0];
  run["causes"] = {{"lost_ns", {{"no_cpu", run.at("wall_ns").get<double>() / 5}}}};
  std::vector<std::string> without;
  const History history = history_of(history_rows(report, "f", without), "");
  ASSERT_EQ(history.rows[0].causes_percent.size(), 1U);
  EXPECT_EQ(history.rows[0].causes_percent[0].first, "no cpu");
  EXPECT_DOUBLE_EQ(history.rows[0].causes_percent[0].second, 20);
  EXPECT_THAT(render_history_html(history), HasSubstr("\"unit\":\"%\""));
}

TEST(History, KeepsTheGivenOrderWhereADateIsMissing) {
  std::vector<std::string> without;
  std::vector<HistoryRow> rows;
  for (const Json& report :
       {recorded({.ranks = 1}, "2026-11-03T10:00:00Z", "ccc", "a"), recorded({.ranks = 1}, "", "aaa", "b")}) {
    for (HistoryRow& row : history_rows(report, "f", without)) rows.push_back(std::move(row));
  }
  EXPECT_EQ(history_of(rows, "").rows[0].label, "ccc");
  EXPECT_EQ(history_of(rows, "model").by, "model");
  EXPECT_THROW(history_of(rows, "branch"), Error);
}

TEST(History, HasALabelOfItsOwnForEachRun) {
  const auto labels = [](std::vector<HistoryRow> rows, const std::string& by) {
    std::vector<std::string> of;
    for (const HistoryRow& row : history_of(std::move(rows), by).rows) of.push_back(row.label);
    return of;
  };
  std::vector<HistoryRow> rows(3);
  rows[0].recorded = "2026-11-03T10:00:07Z", rows[1].recorded = "2026-11-03T10:00:02Z";
  rows[2].recorded = "2026-11-03T11:00:00Z";
  using testing::ElementsAre;
  EXPECT_THAT(labels(rows, ""), ElementsAre("2026-11-03 10:00:02", "2026-11-03 10:00:07", "2026-11-03 11:00:00"));
  rows[1].recorded = rows[0].recorded;
  EXPECT_THAT(labels(rows, ""), ElementsAre("2026-11-03 10:00:07", "2026-11-03 10:00:07 (2)", "2026-11-03 11:00:00"));
  rows[1].recorded = "2026-11-03T10:01:00Z";
  EXPECT_THAT(labels(rows, ""), ElementsAre("2026-11-03 10:00", "2026-11-03 10:01", "2026-11-03 11:00"));
  for (HistoryRow& row : rows) row.config["commit"] = "abc";
  EXPECT_THAT(labels(rows, ""), ElementsAre("abc", "abc (2)", "abc (3)"));
}

TEST(History, RefusesWhatIsNoReport) {
  std::vector<std::string> without;
  EXPECT_THROW(history_rows(Json::parse("{}"), "f", without), Error);
  EXPECT_THROW(history_rows(Json::parse(R"({"runs": [{"path": 3, "iterations": {}}]})"), "f", without), Error);
  EXPECT_TRUE(history_rows(Json::parse(R"({"runs": [{"path": "x"}]})"), "f", without).empty());
  EXPECT_EQ(without, std::vector<std::string>{"x"});
  EXPECT_THROW(history_of({}, ""), Error);
}

}  // namespace
}  // namespace paceline::analysis
