// SPDX-License-Identifier: Apache-2.0
// `paceline query` as a user meets it.
#include <nlohmann/json.hpp>

#include "profiler/format/mpi_functions.h"
#include "profiler/format/writer.h"
#include "tests/integration/command.h"

namespace paceline {
namespace {

using format::EventType;
using ::testing::HasSubstr;

class QueryCommand : public CommandTest {
 protected:
  // Two ranks with 3 iterations of 1 ms each, an MPI_Barrier of 0.1 ms in each.
  void SetUp() override {
    CommandTest::SetUp();
    for (int rank = 0; rank < 2; ++rank) {
      format::HeaderFacts facts;
      facts.file_id = 40 + static_cast<std::uint64_t>(rank);
      facts.pid = 100 + static_cast<std::uint32_t>(rank);
      facts.ticks_per_second = 1e9;
      facts.start_utc_ns = 1'700'000'000'000'000'000;
      facts.rank = rank;
      facts.world_size = 2;
      facts.host = "node";
      facts.boot_id = "boot";
      format::TraceWriter writer(facts);
      const auto iteration = writer.scope("iteration", "train", "iteration");
      const auto barrier = static_cast<std::uint64_t>(format::MpiId::Barrier);
      for (std::uint64_t i = 0; i < 3; ++i) {
        const std::uint64_t t = 1'000'000 * i;
        writer.add(0, t, EventType::push, iteration);
        writer.add(0, t + 600'000, EventType::mpi_begin_coll, barrier | std::uint64_t{0xffffffff} << 16,
                   {{0, i << 32}});
        writer.add(0, t + 700'000, EventType::mpi_end, barrier);
        writer.add(0, t + 1'000'000, EventType::pop, iteration >> 48);
      }
      writer.write(directory_ / "run" / ("rank" + std::to_string(rank) + ".pace"), format::Ending::closed);
    }
  }
};

TEST_F(QueryCommand, PrintsATable) {
  const Outcome outcome = paceline(
      "query run 'SELECT rank, name, count(*) AS calls, sum(duration_ns) AS ns FROM slices GROUP BY rank, name'");
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(outcome.output,
            "rank  name         calls       ns\n"
            "   0  MPI_Barrier      3   300000\n"
            "   0  iteration        3  3000000\n"
            "   1  MPI_Barrier      3   300000\n"
            "   1  iteration        3  3000000\n");
}

TEST_F(QueryCommand, WritesCsvToAFileAndJson) {
  ASSERT_EQ(paceline("query run 'SELECT rank, host FROM ranks' --format csv -o ranks.csv").status, 0);
  EXPECT_EQ(text_of(directory_ / "ranks.csv"), "rank,host\n0,node\n1,node\n");
  const Outcome outcome = paceline("query --format json run/rank1.pace 'SELECT rank, pid FROM ranks'");
  EXPECT_EQ(nlohmann::json::parse(outcome.output), nlohmann::json::parse(R"([{"rank": 1, "pid": 101}])"));
}

TEST_F(QueryCommand, ReadsTheSqlFromAFileOrTheStandardInput) {
  std::ofstream(directory_ / "count.sql") << "-- all of them\nSELECT count(*) AS n FROM slices;\n";
  for (const char* command :
       {"query run --file count.sql", "query run --file - < count.sql", "query run - < count.sql"}) {
    EXPECT_EQ(paceline(command).output, " n\n12\n") << command;
  }
}

TEST_F(QueryCommand, ListsItsTablesWithoutARun) {
  const Outcome outcome = paceline("query --schema");
  EXPECT_EQ(outcome.status, 0);
  for (const char* table : {"slices: ", "marks: ", "arguments: ", "kinds: ", "ranks: ", "tracks: ", "phases: ",
                            "iterations: ", "collectives: ", "messages: ", "counters: ", "percentile(x, p)"}) {
    EXPECT_THAT(outcome.output, HasSubstr(table));
  }
}

TEST_F(QueryCommand, SaysWhatIsMissing) {
  expect_refused("query", 2, "the run is missing: paceline query RUN 'SELECT");
  expect_refused("query run", 2, "the SQL is missing: paceline query RUN 'SELECT");
  expect_refused("query run 'SELECT 1' --file x.sql", 2, "the SQL is given twice");
  expect_refused("query run --file missing.sql", 1, "missing.sql: No such file or directory; --file needs a file");
  expect_refused("query missing 'SELECT 1'", 1, "missing: no such file or directory");
  expect_refused("query --format yaml run 'SELECT 1'", 2, "yaml");
}

TEST_F(QueryCommand, NamesTheErrorInTheSql) {
  expect_refused("query run 'SELECT nmae FROM slices'", 1,
                 "paceline query: line 1, column 8: no such column: nmae; near is name (of ");
  expect_refused("query run 'DROP TABLE slices'", 1, "paceline query: ");
  expect_refused("query run 'SELECT * FROM slices' > /dev/full", 1, "No space left on device");
}

TEST_F(QueryCommand, AFailedQueryLeavesAnOlderFileAlone) {
  std::ofstream(directory_ / "old.csv") << "old\n";
  EXPECT_EQ(paceline("query run 'SELECT nope' --format csv -o old.csv").status, 1);
  EXPECT_EQ(text_of(directory_ / "old.csv"), "old\n");
}

TEST_F(QueryCommand, EndsOnCtrlC) {
  const std::string endless =
      "'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i % 7) FROM n'";
  const std::string command = "cd '" + directory_.string() + "' && timeout --foreground --preserve-status -s INT 3 '" +
                              PACELINE_PROGRAM + "' query run " + endless + " 2>errors";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(text_of(directory_ / "errors"), "paceline query: interrupted; the result is not complete\n");
}

}  // namespace
}  // namespace paceline
