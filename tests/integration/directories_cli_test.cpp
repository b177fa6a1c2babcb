// SPDX-License-Identifier: Apache-2.0
// Directories that hold different ranks of one job, as hosts without a common file system make them, are one run.
#include <nlohmann/json.hpp>

#include "tests/integration/command.h"
#include "tests/unit/analysis/rank_file.h"
#include "tests/unit/analysis/report_job.h"

namespace paceline::analysis {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class SeveralDirectories : public CommandTest {
 protected:
  // Each rank of a job of four into the directory of its host: two ranks on each of two hosts.
  void SetUp() override {
    CommandTest::SetUp();
    write_run(make_trace(Job{.ranks = 4}), directory_ / "all");
    for (const char* host : {"host1", "host2"}) fs::create_directories(directory_ / host);
    for (int rank = 0; rank < 4; ++rank) {
      const std::string name = "rank" + std::to_string(rank) + ".pace";
      fs::copy_file(directory_ / "all" / name, directory_ / (rank < 2 ? "host1" : "host2") / name);
    }
  }

  json runs_of(const std::string& paths) const {
    const Outcome outcome = paceline("report --format json " + paths);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return json::parse(outcome.output)["runs"];
  }
};

const std::string one_run = "host1 and host2 hold ranks 0, 1, 2 and 3 of job 7: read as one run\n";

TEST_F(SeveralDirectories, OfOneJobAreOneRun) {
  const Outcome report = paceline("report --format json host1 host2");
  EXPECT_EQ(report.status, 0);
  EXPECT_THAT(report.errors, HasSubstr("paceline report: " + one_run));
  json run = json::parse(report.output)["runs"], whole = runs_of("all");
  ASSERT_EQ(run.size(), 1U);
  EXPECT_EQ(run[0]["path"], "host1 host2");
  EXPECT_EQ(run[0]["ranks"], 4);
  EXPECT_EQ(run[0]["per_rank"], whole[0]["per_rank"]);
  EXPECT_EQ(runs_of("--align collectives host2 host1").size(), 1U);

  const Outcome info = paceline("info host1 host2");
  EXPECT_THAT(info.output, HasSubstr("host1 host2: 4 ranks"));
  EXPECT_THAT(info.output, HasSubstr("  " + one_run));
}

TEST_F(SeveralDirectories, OfOneJobAreOneRunForEachCommand) {
  EXPECT_EQ(paceline("query --format csv host1 host2 'SELECT count(*) AS n FROM ranks'").output, "n\n4\n");
  std::ofstream(directory_ / "count.sql") << "SELECT count(*) AS n FROM ranks";
  EXPECT_EQ(paceline("query --format csv --file count.sql host1 host2").output, "n\n4\n");
  EXPECT_EQ(paceline("export --to csv host1 host2").output, paceline("export --to csv all").output);
  EXPECT_EQ(paceline("whatif --fp16 host1 host2").status, paceline("whatif --fp16 all").status);
  EXPECT_EQ(json::parse(paceline("compare --format json host1 host2 all").output)["base"], json({"host1 host2"}));
  const json frame = json::parse(paceline("watch --once --json host1 host2").output);
  EXPECT_EQ(frame["ranks"].size(), 4U) << frame;
  EXPECT_EQ(frame["path"], "host1 host2");
}

TEST_F(SeveralDirectories, OfOtherRunsStaySeparate) {
  EXPECT_EQ(runs_of("host1 all").size(), 2U);                    // rank 0 is in both
  write_run(make_trace(Job{.ranks = 2}), directory_ / "small");  // another number of ranks
  EXPECT_EQ(runs_of("small host2").size(), 2U);
  EXPECT_THAT(paceline("info small host2").output, Not(HasSubstr("read as one run")));
  expect_refused("export --to csv small host2", 1, "host2: is another run than small");
  expect_refused("compare host1 host2", 2, "expected two runs");
}

}  // namespace
}  // namespace paceline::analysis
