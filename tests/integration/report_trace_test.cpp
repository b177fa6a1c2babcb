// SPDX-License-Identifier: Apache-2.0
// The whole way of a hand-made job: through a .pace file and the program `paceline` it has the figures that it has as a
// trace in memory.
#include <nlohmann/json.hpp>
#include <string>

#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "tests/integration/command.h"
#include "tests/unit/analysis/link_job.h"
#include "tests/unit/analysis/rank_file.h"
#include "tests/unit/analysis/report_job.h"

namespace paceline::analysis {
namespace {

using nlohmann::json;

class ReportOfATrace : public CommandTest {};

// The text without the breaks of its lines.
std::string in_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const char next = c == '\n' ? ' ' : c;
    if (next != ' ' || line.empty() || line.back() != ' ') line += next;
  }
  return line;
}

TEST_F(ReportOfATrace, HasTheFiguresOfTheSameTraceInMemory) {
  for (const int ranks : {1, 2}) {
    const Trace trace = make_trace(Job{.ranks = ranks});
    const std::string name = "run" + std::to_string(ranks);
    write_run(trace, directory_ / name);
    const Outcome outcome = paceline("report --format json " + name);
    ASSERT_EQ(outcome.status, 0) << outcome.errors;
    RunAnalysis in_memory = analyse_run(trace, name);
    in_memory.recorded_utc_ns = 1'700'000'000'000'000'000;  // as write_run() writes it
    const json expected = json::parse(render_json(build_report({in_memory})));
    const json found = json::parse(outcome.output);
    EXPECT_EQ(found["runs"], expected["runs"]) << json::diff(expected["runs"], found["runs"]).dump(2);
    EXPECT_EQ(found["findings"], expected["findings"]);
    EXPECT_EQ(found["headline"], expected["headline"]);
    EXPECT_EQ(found["runs"][0]["per_rank"][0]["phases"]["forward"], 240'000'000 / ranks);
  }
}

// 8 MB in 400 ms are 20 MB/s = 0.16 Gbit/s.
TEST_F(ReportOfATrace, NamesALinkThatCarriesLittle) {
  write_run(make_trace(LinkJob{}), directory_ / "slow");
  const json run = json::parse(paceline("report --format json slow").output)["runs"][0];
  ASSERT_EQ(run["links"].size(), 1U) << run["links"];
  EXPECT_EQ(run["links"][0]["hosts"], json({"alice", "bob"}));
  EXPECT_EQ(run["links"][0]["busbw_bytes_per_s"], 20e6);
  EXPECT_EQ(run["links"][0]["slow"], true);
  EXPECT_FALSE(run.contains("small_collectives"));
  const std::string carries = "The link between alice and bob carries 0.16 Gbit/s";
  EXPECT_THAT(in_one_line(paceline("report slow").output), ::testing::HasSubstr(carries));
  const std::string rated = in_one_line(paceline("report --link-gbit 10 slow").output);
  EXPECT_THAT(rated, ::testing::HasSubstr(carries));
  EXPECT_THAT(rated, ::testing::HasSubstr("Its rated speed is 10 Gbit/s (as given), of which that is 1.6 %."));
  EXPECT_THAT(in_one_line(paceline("report --link-gbit 0.2 slow").output),
              ::testing::Not(::testing::HasSubstr(carries)));
  write_run(make_trace(LinkJob{.large_ms = 40}), directory_ / "fast");
  EXPECT_EQ(json::parse(paceline("report --format json fast").output)["runs"][0]["links"][0]["slow"], false);
}

// 20 calls of 1 ms in a step of 68 ms; 8 MB take 8 ms, so 1 MB takes as long as a call costs at least.
TEST_F(ReportOfATrace, NamesCollectivesThatAreTooSmall) {
  write_run(make_trace(LinkJob{.two_hosts = false, .small = 20, .large_ms = 8}), directory_ / "tiny");
  const json small = json::parse(paceline("report --format json tiny").output)["runs"][0]["small_collectives"];
  EXPECT_EQ(small["calls_per_iteration"], 20);
  EXPECT_EQ(small["median_bytes"], 1000);
  EXPECT_NEAR(small["fixed_ns"].get<double>(), 1e6, 1e3);
  EXPECT_NEAR(small["half_bytes"].get<double>(), 7999.0 / 7 * 1000, 5e3);
  EXPECT_NEAR(small["share_of_transfer"].get<double>(), 20.0 / 28, 1e-3);
  EXPECT_NEAR(small["share_of_step"].get<double>(), 20.0 / 68, 1e-3);
  EXPECT_THAT(in_one_line(paceline("report tiny").output),
              ::testing::HasSubstr("The collectives are too small: an iteration has 20 of MPI_Allreduce"));
}

}  // namespace
}  // namespace paceline::analysis
