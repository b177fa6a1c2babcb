// SPDX-License-Identifier: Apache-2.0
// The queries of docs/queries.md give the results that stand beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "analysis/query/output.h"
#include "profiler/format/error.h"
#include "tests/unit/analysis/query_example.h"

namespace paceline::analysis {
namespace {

struct DocumentedQuery {
  std::string heading, sql, result;
};

std::string document() {
  std::ifstream file(std::string(PACELINE_SOURCE) + "/docs/queries.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

// Each block ```sql under a heading, and the block ```text after it.
std::vector<DocumentedQuery> documented_queries() {
  std::istringstream lines(document());
  std::vector<DocumentedQuery> queries;
  std::string heading, *block = nullptr;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("### ")) heading = line.substr(4);
    if (line == "```sql") {
      queries.push_back({heading, "", ""});
      block = &queries.back().sql;
    } else if (line == "```text" && !queries.empty()) {
      block = &queries.back().result;
    } else if (line == "```") {
      block = nullptr;
    } else if (block != nullptr) {
      *block += line + "\n";
    }
  }
  return queries;
}

std::string table_of(QueryRunner& runner, const std::string& sql) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* file = open_memstream(&text, &size);
  std::string error;
  try {
    runner.run(sql, *query_output(QueryFormat::table, file));
  } catch (const Error& failure) {
    error = failure.what();
  }
  std::fclose(file);
  const std::string result = error.empty() ? std::string(text, size) : error;
  std::free(text);
  return result;
}

TEST(QueryDocument, EachQueryGivesTheResultBesideIt) {
  const Trace trace = query_example();
  QueryRunner runner(trace);
  const std::vector<DocumentedQuery> queries = documented_queries();
  EXPECT_GE(queries.size(), 20U);
  for (const DocumentedQuery& query : queries) {
    EXPECT_EQ(table_of(runner, query.sql), query.result) << query.heading << "\n" << query.sql;
  }
}

TEST(QueryDocument, ListsAllTablesAndColumns) {
  EXPECT_NE(document().find(query_schema_text()), std::string::npos)
      << "docs/queries.md has to contain the output of `paceline query --schema`:\n"
      << query_schema_text();
}

}  // namespace
}  // namespace paceline::analysis
