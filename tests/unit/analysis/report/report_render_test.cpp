// SPDX-License-Identifier: Apache-2.0
// Every rendering says the same; JSON keeps to its schema, and HTML loads nothing.
#include "analysis/report/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "analysis/report/build.h"
#include "analysis/report/renderings/html_parts.h"
#include "analysis/scaling/runs_table.h"
#include "tests/unit/analysis/checked_report.h"
#include "tests/unit/analysis/report_job.h"

namespace paceline::analysis {
namespace {

using testing::HasSubstr;
using testing::Not;

Report two_runs() {
  return build_report(
      {analyse_run(make_trace({.ranks = 1}), "runs/ranks-1"), analyse_run(make_trace({.ranks = 2}), "runs/ranks-2")});
}

void expect_keys(const nlohmann::ordered_json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) EXPECT_TRUE(object.contains(key)) << key << " in " << object.dump();
}

TEST(Json, HasTheKeysThatScriptsRelyOn) {
  const auto json = nlohmann::ordered_json::parse(render_json(two_runs()));
  EXPECT_EQ(json["schema"], "paceline.report/1");
  const auto& run = json["runs"][1];
  expect_keys(run, {"path", "ranks", "hosts", "span_ns", "config", "accuracy", "seconds_to_accuracy", "iterations",
                    "breakdown", "per_rank", "collectives"});
  expect_keys(run["iterations"], {"count", "images", "median_ns", "p95_ns"});
  expect_keys(run["breakdown"], {"parallel_ns", "serial_ns", "overhead_ns"});
  expect_keys(run["per_rank"][0], {"rank", "wall_ns", "phases"});
  expect_keys(run["collectives"][0], {"operation", "bytes", "count", "wait_ns", "transfer_ns", "busbw_bytes_per_s"});
  const auto& scaling = json["scaling"];
  expect_keys(scaling["points"][1],
              {"ranks", "epochs", "images", "seconds", "throughput", "speedup", "efficiency", "karp_flatt"});
  expect_keys(scaling["amdahl"], {"serial_fraction"});
  expect_keys(scaling, {"speedup_limit"});
  expect_keys(json["findings"][0], {"severity", "text"});
  EXPECT_EQ(run["path"], "runs/ranks-2");
  EXPECT_EQ(run["iterations"]["images"].dump(), "256");
  std::int64_t sum = 0;
  for (const auto& [phase, ns] : run["per_rank"][0]["phases"].items()) sum += ns.get<std::int64_t>();
  EXPECT_EQ(sum, run["per_rank"][0]["wall_ns"]);
}

TEST(Json, LeavesOutWhatDoesNotApply) {
  const auto json = report_json(build_report({}, read_runs_table(PACELINE_TEST_DATA "/reedbush-2018.csv")));
  EXPECT_TRUE(json["runs"].empty());
  EXPECT_FALSE(json["scaling"].contains("amdahl"));
  EXPECT_FALSE(json["scaling"]["points"][0].contains("karp_flatt"));
  EXPECT_FALSE(json["scaling"]["points"][0].contains("accuracy"));
  expect_keys(json["scaling"]["time_model"][1], {"ranks", "fixed_s", "per_epoch_s"});
  EXPECT_NEAR(json["scaling"]["speedup_limit"].get<double>(), 1.859, 0.0005);
  const auto one = report_json(build_report({analyse_run(make_trace({.ranks = 1}), "a")}));
  EXPECT_FALSE(one["runs"][0]["per_rank"][0]["phases"].contains("copy"));
}

TEST(Html, LoadsNothingFromElsewhere) {
  const std::string html = render_html(two_runs());
  const std::regex load(R"(src\s*=|href\s*=\s*(?!"#)|@import|url\()", std::regex::icase);  // "#" stays in the page
  const std::string library(html_chart_library());
  std::string own = html;
  if (const auto at = own.find(library); !library.empty() && at != std::string::npos) own.erase(at, library.size());
  EXPECT_FALSE(std::regex_search(own, load));
  EXPECT_THAT(own, Not(HasSubstr("http")));
}

TEST(Html, HasChartsAndTablesThatNeedNoScript) {
  const std::string html = render_html(two_runs());
  if (!html_chart_library().empty()) {
    EXPECT_THAT(html, HasSubstr("new Chart("));
  }
  for (const char* kind : {"speedup", "lost", "phases", "iterations"}) {
    EXPECT_THAT(html, HasSubstr("\"kind\":\"" + std::string(kind) + "\""));
  }
  EXPECT_THAT(html, HasSubstr(">MPI_Allreduce</td>"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
}

// A narrow screen shows each row of a wide table as a block, and paper has no dark colours and no divided charts.
TEST(Html, FitsNarrowScreensAndPaper) {
  const std::string page = render_html(two_runs());
  EXPECT_THAT(page, HasSubstr("<table class=\"scaling wide\">"));
  EXPECT_THAT(page, HasSubstr("<td class=\"n\" data-label=\"ranks\">2</td>"));
  EXPECT_THAT(page, HasSubstr("<table class=\"figures\">")) << "two columns fit";
  EXPECT_THAT(page, HasSubstr("content: attr(data-label)"));
  EXPECT_THAT(page, HasSubstr("figure, .card, .findings li, tr { break-inside: avoid; }"));
  EXPECT_THAT(page, HasSubstr("addEventListener(\"beforeprint\""));
  EXPECT_LT(page.find(html_table_script()), page.find(html_script())) << "parts are unfolded before charts are drawn";
}

TEST(Html, EscapesWhatATraceSays) {
  Job job{.ranks = 1};
  job.config["model"] = "</script><b>&\"";
  const std::string html = render_html(build_report({analyse_run(make_trace(job), "<run>")}));
  EXPECT_THAT(html, Not(HasSubstr("<run>")));
  EXPECT_THAT(html, Not(HasSubstr("</script><b>")));
  EXPECT_THAT(html, HasSubstr("&lt;/script&gt;&lt;b&gt;&amp;&quot;"));
}

TEST(Markdown, HasTablesAndEscapesBars) {
  const std::string md = render_markdown(two_runs());
  EXPECT_THAT(md, HasSubstr("# Paceline report"));
  EXPECT_THAT(md,
              HasSubstr("| MPI\\_Allreduce | 1.00 MB | 2 | 4 | 5.00 ms | 10.0 ms | 40.0 ms | 100 MB/s | 100 MB/s |"));
  const std::string named =
      render_markdown(build_report({}, parse_runs_table("ranks,epochs,images,seconds\n1,1,1,1\n", "a|b")));
  EXPECT_THAT(named, HasSubstr("a\\|b:2"));
}

TEST(Csv, HasOneRowARunAndRankAndOneATablesRow) {
  const std::string runs = render_csv(two_runs());
  EXPECT_EQ(std::count(runs.begin(), runs.end(), '\n'), 1 + 1 + 2);
  const std::string table = render_csv(build_report({}, read_runs_table(PACELINE_TEST_DATA "/reedbush-2018.csv")));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + 5);
  std::istringstream lines(runs + table);
  std::ptrdiff_t commas = -1;
  for (std::string line; std::getline(lines, line);) {
    if (commas < 0) commas = std::count(line.begin(), line.end(), ',');
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), commas) << line;
  }
}

TEST(Text, NamesNoHostWhereTheTraceHasNone) {
  Trace trace = make_trace({.ranks = 2});
  for (Rank& rank : trace.ranks) rank.host.clear();
  const std::string text = checked_text(build_report({analyse_run(trace, "run")}));
  EXPECT_THAT(text, HasSubstr("rank 1"));
  EXPECT_THAT(text, Not(HasSubstr("rank 1 on")));
}

TEST(Text, HasTheVerdictFirstAndAlignsColumns) {
  const std::string text = checked_text(two_runs());
  EXPECT_TRUE(text.starts_with(
      "In these runs, 2 ranks trained 1.25 times as fast as one; 525 ms of 605 ms lost are serial work, "
      "mostly\nstartup; test accuracy 95.0 % (one rank: 95.0 %)"))
      << text;
  EXPECT_THAT(text, HasSubstr("62.3 %"));
  EXPECT_THAT(text, HasSubstr("\n  phase          rank 0 on alice  rank 1 on alice\n"
                              "  startup        1.00 s (62.3 %)  1.00 s (62.3 %)\n"));
}

}  // namespace
}  // namespace paceline::analysis
