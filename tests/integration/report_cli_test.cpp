// SPDX-License-Identifier: Apache-2.0
// `paceline report` as a user meets it: what it writes where, and what it says to bad input.
#include <nlohmann/json.hpp>

#include "tests/integration/command.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string table = PACELINE_TEST_DATA "/reedbush-2018.csv";

class ReportCommand : public CommandTest {
 protected:
  Outcome report(const std::string& arguments) const { return paceline("report " + arguments); }
  void expect_refused(const std::string& arguments, int status, const std::string& what) const {
    CommandTest::expect_refused("report " + arguments, status, what);
  }
};

TEST_F(ReportCommand, PrintsTheSummaryWhereNothingIsAskedFor) {
  const Outcome outcome = report(table);
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("S(2) = 1.694"));
  EXPECT_THAT(outcome.output, HasSubstr("No Amdahl curve is fitted through 1, 2 and 4 ranks"));
}

TEST_F(ReportCommand, WritesAFormatToStandardOutput) {
  const Outcome outcome = report("--format json " + table);
  EXPECT_EQ(report("--format json " + table + " " + table).status, 0);  // the format takes one word, the rest are runs
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(nlohmann::json::parse(outcome.output)["schema"], "paceline.report/1");
}

TEST_F(ReportCommand, WritesSeveralFormatsIntoADirectoryThatItMakes) {
  EXPECT_EQ(report("--format html,md,json,csv -o out/all " + table).status, 0);
  EXPECT_THAT(text_of(directory_ / "out/all/report.html"), StartsWith("<!doctype html>"));
  EXPECT_THAT(text_of(directory_ / "out/all/report.md"), StartsWith("# Paceline report"));
  EXPECT_THAT(text_of(directory_ / "out/all/report.json"), StartsWith("{"));
  EXPECT_THAT(text_of(directory_ / "out/all/report.csv"), StartsWith("run,ranks,rank,host"));
}

TEST_F(ReportCommand, TakesTheFormatFromTheOutputsName) {
  EXPECT_EQ(report("-o r.html " + table).status, 0);
  EXPECT_THAT(text_of(directory_ / "r.html"), StartsWith("<!doctype html>"));
}

TEST_F(ReportCommand, TakesSeriesColumnsAndNoise) {
  std::ofstream(directory_ / "runs.csv")
      << "Ranks;Epochs;Images;Seconds;Nodes\n1;1;100;100;1\n2;1;100;60;1\n4;1;100;40;2\n";
  EXPECT_THAT(report("runs.csv").output, HasSubstr("Amdahl's law through 1, 2 and 4 ranks"));
  EXPECT_THAT(report("--series Nodes runs.csv").output,
              HasSubstr("No Amdahl curve is fitted through 1, 2 and 4 ranks"));
  EXPECT_THAT(report("--noise 1 runs.csv").output, HasSubstr("S(2) = 1.667 (95 %: 1.621–1.714)"));
}

TEST_F(ReportCommand, RefusesBadInputInOneLine) {
  fs::create_directories(directory_ / "empty");
  std::ofstream(directory_ / "bad.csv") << "ranks,epochs,images,seconds\n1,4,10000,193\n2,4,10000,fast\n";
  expect_refused("missing", 1, "missing");
  expect_refused("empty", 1, "empty");
  expect_refused("bad.csv", 1, "bad.csv:3: seconds is \"fast\", not a number");
  std::ofstream(directory_ / "semicolons.csv") << "ranks;epochs;images;seconds\n1;4;10000;193,2\n";
  expect_refused("semicolons.csv", 1, "semicolons.csv:2: seconds is \"193,2\": write numbers with a decimal point");
  std::ofstream(directory_ / "nothing.csv") << "";
  expect_refused("nothing.csv", 1, "nothing.csv:1: the file is empty");
  expect_refused("--format html -o /proc/none/r.html " + table, 1, "cannot be written");
}

TEST_F(ReportCommand, RefusesWrongUsageWithStatus2) {
  expect_refused("", 2, "RUN");
  expect_refused("--format pdf " + table, 2, "pdf");
  expect_refused("--format html,md " + table, 2, "-o");
  expect_refused("--no-such-option " + table, 2, "--no-such-option");
  expect_refused("--noise -1 " + table, 2, "--noise");
}

}  // namespace
}  // namespace paceline
