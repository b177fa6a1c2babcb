// SPDX-License-Identifier: Apache-2.0
// The result of a query as a table, CSV, TSV and JSON.
#include "analysis/query/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "profiler/format/error.h"
#include "tests/unit/analysis/query_example.h"

namespace paceline::analysis {
namespace {

std::string output_of(QueryFormat format, const std::string& sql) {
  static const Trace trace = query_example();
  QueryRunner runner(trace);
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* file = open_memstream(&text, &size);
  runner.run(sql, *query_output(format, file));
  std::fclose(file);
  const std::string result(text, size);
  std::free(text);
  return result;
}

constexpr const char* values =
    "SELECT 1 AS n, 'a, \"b\"' AS t, NULL AS none, 2.5 AS x UNION ALL SELECT -20, 'ü', 3, 1e300";

TEST(QueryOutput, TableHasNumbersOnTheRight) {
  EXPECT_EQ(output_of(QueryFormat::table, values),
            "  n  t       none       x\n"
            "  1  a, \"b\"           2.5\n"
            "-20  ü          3  1e+300\n");
}

TEST(QueryOutput, TableKeepsEachRowOnOneLine) {
  EXPECT_EQ(output_of(QueryFormat::table, "SELECT char(97, 10, 98, 27, 99) AS t"), "t\na\\nb�c\n");
}

TEST(QueryOutput, TableOfNoRowsIsItsHeader) {
  EXPECT_EQ(output_of(QueryFormat::table, "SELECT rank, host FROM ranks WHERE rank = 9"), "rank  host\n");
}

TEST(QueryOutput, TableGoesOnAfterItsWidthsAreKnown) {
  const std::string sql =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) SELECT i FROM n";
  const std::string text = output_of(QueryFormat::table, sql);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2501);
  EXPECT_TRUE(text.ends_with("2499\n2500\n"));
}

TEST(QueryOutput, CsvQuotesWhatItHasTo) {
  EXPECT_EQ(output_of(QueryFormat::csv, values), "n,t,none,x\n1,\"a, \"\"b\"\"\",,2.5\n-20,ü,3,1e+300\n");
}

TEST(QueryOutput, TsvEscapesTabsAndLineEnds) {
  EXPECT_EQ(output_of(QueryFormat::tsv, "SELECT char(97, 9, 98, 10, 92) AS t, 1.0 AS x"), "t\tx\na\\tb\\n\\\\\t1.0\n");
}

TEST(QueryOutput, JsonKeepsAllDigitsAndDifferentKeys) {
  const auto rows = nlohmann::json::parse(
      output_of(QueryFormat::json,
                "SELECT 9223372036854775807 AS n, -9223372036854775808 AS n, 9007199254740993 AS n, NULL AS a, "
                "1e999 AS inf, 'x\"y' AS t, x'00ff' AS b, 1.0 AS one"));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["n"].get<std::int64_t>(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(rows[0]["n_2"].get<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(rows[0]["n_3"].get<std::int64_t>(), 9007199254740993);
  EXPECT_TRUE(rows[0]["a"].is_null());
  EXPECT_TRUE(rows[0]["inf"].is_null());
  EXPECT_EQ(rows[0]["t"], "x\"y");
  EXPECT_EQ(rows[0]["b"], "00ff");
  EXPECT_TRUE(rows[0]["one"].is_number_float());
}

TEST(QueryOutput, JsonOfNoRowsIsAnEmptyArray) {
  EXPECT_EQ(nlohmann::json::parse(output_of(QueryFormat::json, "SELECT 1 FROM ranks WHERE rank = 9")).size(), 0U);
}

TEST(QueryOutput, AFullDiskIsAnError) {
  static const Trace trace = query_example();
  QueryRunner runner(trace);
  std::FILE* full = std::fopen("/dev/full", "w");
  EXPECT_THROW(runner.run("SELECT * FROM slices", *query_output(QueryFormat::csv, full)), Error);
  std::fclose(full);
}

}  // namespace
}  // namespace paceline::analysis
