// The whole way of a hand-made job: through a .pace file and the program `paceline` it has the figures that it has as a
// trace in memory.
#include <nlohmann/json.hpp>
#include <string>

#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "tests/integration/command.h"
#include "tests/unit/analysis/rank_file.h"
#include "tests/unit/analysis/report_job.h"

namespace paceline::analysis {
namespace {

using nlohmann::json;

class ReportOfATrace : public CommandTest {};

TEST_F(ReportOfATrace, HasTheFiguresOfTheSameTraceInMemory) {
  for (const int ranks : {1, 2}) {
    const Trace trace = make_trace({.ranks = ranks});
    const std::string name = "run" + std::to_string(ranks);
    write_run(trace, directory_ / name);
    const Outcome outcome = paceline("report --format json " + name);
    ASSERT_EQ(outcome.status, 0) << outcome.errors;
    const json expected = json::parse(render_json(build_report({analyse_run(trace, name)})));
    const json found = json::parse(outcome.output);
    EXPECT_EQ(found["runs"], expected["runs"]) << json::diff(expected["runs"], found["runs"]).dump(2);
    EXPECT_EQ(found["findings"], expected["findings"]);
    EXPECT_EQ(found["headline"], expected["headline"]);
    EXPECT_EQ(found["runs"][0]["per_rank"][0]["phases"]["forward"], 240'000'000 / ranks);
  }
}

}  // namespace
}  // namespace paceline::analysis
