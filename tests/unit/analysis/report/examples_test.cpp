// SPDX-License-Identifier: Apache-2.0
// The examples of docs/hacking.md compile and do what they claim. The text between the markers stands there word by
// word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "analysis/report/sections.h"
#include "analysis/report/values.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis {

namespace sections {
RunSection evaluation();
}

// [metric]
// How long the main thread of a rank was inside MPI_Barrier, in ns. Linear in its slices.
std::int64_t barrier_ns(const Trace& trace, const Rank& rank) {
  const Track* main = main_track(rank);
  const NameId barrier = trace.names.find("MPI_Barrier");
  if (main == nullptr || barrier == 0) return 0;
  std::int64_t ns = 0;
  for (std::size_t i = 0; i < main->slices.size(); ++i) {
    if (trace.kind_of(main->slices, i).name == barrier) ns += main->slices.duration_ns[i];
  }
  return ns;
}

TEST(BarrierTime, IsTheSumOfTheBarriersOfTheMainThread) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  TrackBuilder& main = rank.add_main_thread();
  main.add_slice(100, 150, "MPI_Barrier", "mpi", "collective");
  main.add_slice(200, 210, "MPI_Barrier", "mpi", "collective");
  rank.add_track(TrackKind::thread, "loader", 2).add_slice(0, 500, "MPI_Barrier", "mpi", "collective");
  const Trace trace = run.finish();
  EXPECT_EQ(barrier_ns(trace, trace.ranks[0]), 60);
}
// [end]

// [section]
// The evaluations of a run: how long each rank spent on them.
namespace evaluation_section {

std::int64_t evaluate_ns(const RankSummary& rank) { return rank.phase_ns[static_cast<std::size_t>(Phase::evaluate)]; }

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  const RankSummary& rank = run.per_rank.front();
  if (share(evaluate_ns(rank), rank.wall_ns) < 0.5) return;
  out.push_back({Severity::warning, fmt::format("Rank {} spends {} of its time on evaluation. Evaluate less often.",
                                                rank.rank, percent(share(evaluate_ns(rank), rank.wall_ns)))});
}

void tables(const RunAnalysis& run, std::vector<Table>& out) {
  Table table{.id = "evaluation", .title = "Evaluation", .columns = {"rank", "evaluation"}};
  for (const RankSummary& rank : run.per_rank) {
    if (evaluate_ns(rank) == 0) continue;
    table.rows.push_back({std::to_string(rank.rank), with_share(evaluate_ns(rank), rank.wall_ns)});
  }
  out.push_back(std::move(table));  // a table without rows is not drawn
}

void rank_figures(const RunAnalysis& run, std::size_t rank, Json& out) {
  out["evaluation_ns"] = evaluate_ns(run.per_rank[rank]);
}

}  // namespace evaluation_section

RunSection sections::evaluation() {
  using namespace evaluation_section;
  return {.findings = findings, .tables = tables, .rank_figures = rank_figures};
}
// [end]

namespace {

RunAnalysis run_with_evaluation() {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  main.add_slice(0, 40, "forward");
  main.add_slice(40, 100, "evaluate");
  return analyse_run(run.finish(), "run");
}

TEST(ExampleSection, HasItsFindingItsTableAndItsFigures) {
  const RunSection section = sections::evaluation();
  const RunAnalysis run = run_with_evaluation();
  std::vector<Finding> findings;
  section.findings(run, findings);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].text, "Rank 0 spends 60.0 % of its time on evaluation. Evaluate less often.");
  std::vector<Table> tables;
  section.tables(run, tables);
  EXPECT_EQ(tables[0].rows[0][1], "60.0 ns (60.0 %)");
  Json figures;
  section.rank_figures(run, 0, figures);
  EXPECT_EQ(figures["evaluation_ns"], 60);
}

std::string contents(const std::string& path) {
  std::ifstream file(std::string(PACELINE_SOURCE) + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The lines between the marker and the end, as a block of code in Markdown.
std::string example(const std::string& source, const std::string& marker) {
  const std::string begin = "\n// [" + marker + "]\n";
  const std::size_t from = source.find(begin) + begin.size();
  return "```cpp\n" + source.substr(from, source.find("\n// [end]\n", from) - from) + "\n```\n";
}

TEST(Examples, StandInTheDocumentation) {
  const std::string documentation = contents("/docs/hacking.md");
  const std::string source = contents("/tests/unit/analysis/report/examples_test.cpp");
  for (const char* marker : {"metric", "section"}) {
    const std::string text = example(source, marker);
    ASSERT_GT(text.size(), 100U);
    EXPECT_THAT(documentation, testing::HasSubstr(text)) << "docs/hacking.md differs from the example " << marker;
  }
}

}  // namespace
}  // namespace paceline::analysis
