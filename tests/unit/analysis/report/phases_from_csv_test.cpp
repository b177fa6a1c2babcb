// SPDX-License-Identifier: Apache-2.0
// The CSV export is enough to compute the phases of each rank again: a script does, and agrees with the report.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "analysis/exporters/exporter.h"
#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "tests/unit/analysis/report_job.h"

namespace paceline::analysis {
namespace {

namespace fs = std::filesystem;

// 0 where the script's phases are the report's.
int compare(const Trace& trace, const std::string& name) {
  const fs::path directory = fs::temp_directory_path() / ("paceline-phases-" + name + std::to_string(::getpid()));
  fs::create_directories(directory);
  std::FILE* csv = std::fopen((directory / "run.csv").c_str(), "w");
  csv_exporter.write(ExportJob(trace), csv);
  std::fclose(csv);
  std::ofstream(directory / "report.json") << render_json(build_report({analyse_run(trace, "run")}));
  const std::string command = "python3 " PACELINE_SOURCE "/tests/unit/analysis/report/phases_from_csv.py " +
                              (directory / "run.csv").string() + " " + (directory / "report.json").string();
  const int status = std::system(command.c_str());
  fs::remove_all(directory);
  return status;
}

class PhasesFromCsv : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("python3 -c '' 2>/dev/null") != 0) GTEST_SKIP() << "python3 is not installed";
  }
};

// Time before the first range and after the last one belongs to start-up and other: only the process rows have it.
TEST_F(PhasesFromCsv, AreTheReportsWithProcessStartAndEnd) {
  Trace trace = make_trace({.ranks = 2});
  for (Rank& rank : trace.ranks) {
    rank.start_ns -= 123'456'789;
    rank.end_ns += 23'456'789;
  }
  EXPECT_EQ(compare(trace, "whole"), 0);
}

TEST_F(PhasesFromCsv, AreTheReportsWithPausesAndLosses) {
  constexpr std::int64_t ms = 1'000'000;
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.info().end_ns = 2000 * ms;
  rank.info().gaps.push_back({1500 * ms, 1600 * ms, "switched off"});
  TrackBuilder& main = rank.add_main_thread();
  main.add_lost(300 * ms, 450 * ms, 1000);
  for (int i = 0; i < 9; ++i) {
    main.push((1000 + 100 * i) * ms, "iteration", "paceline.trainer", "iteration");
    main.add_slice((1010 + 100 * i) * ms, (1090 + 100 * i) * ms, "forward", "paceline.trainer", "forward");
    main.pop((1100 + 100 * i) * ms);
  }
  EXPECT_EQ(compare(run.finish(), "gaps"), 0);
}

}  // namespace
}  // namespace paceline::analysis
