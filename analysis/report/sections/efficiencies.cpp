// How well the ranks use their time (POP), and how much of it each of them works.
#include "analysis/report/sections.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace efficiencies_section {

constexpr double acceptable = 0.8;  // POP's threshold

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  if (!run.efficiencies || run.efficiencies->parallel >= acceptable) return;
  const Efficiencies& e = *run.efficiencies;
  const bool imbalance = e.load_balance < e.communication;
  out.push_back({Severity::info,
                 fmt::format("The parallel efficiency of the iterations is {}: load balance {} × communication {}. The "
                             "larger loss is {}.",
                             percent(e.parallel), percent(e.load_balance), percent(e.communication),
                             imbalance ? "that the ranks have different amounts of work"
                                       : "communication, which includes waiting for ranks that are late in turn")});
}

void tables(const RunAnalysis& run, std::vector<Table>& out) {
  if (!run.efficiencies) return;
  const Efficiencies& e = *run.efficiencies;
  Table table{.id = "efficiencies",
              .title = "Efficiencies of the iterations (POP)",
              .columns = {"efficiency", "value"},
              .rows = {{"parallel efficiency = load balance × communication", percent(e.parallel)},
                       {"load balance: mean useful time ÷ largest", percent(e.load_balance)},
                       {"communication: largest useful time ÷ time of the iterations", percent(e.communication)}},
              .note = "Useful is everything in an iteration but communication and idle. POP calls 80 % acceptable."};
  out.push_back(std::move(table));
}

void figures(const RunAnalysis& run, Json& out) {
  if (!run.efficiencies) return;
  out["efficiencies"] = {{"parallel", run.efficiencies->parallel},
                         {"load_balance", run.efficiencies->load_balance},
                         {"communication", run.efficiencies->communication}};
}

void rank_figures(const RunAnalysis& run, std::size_t r, Json& out) {
  if (run.efficiencies) out["useful_ns"] = run.efficiencies->useful_ns[r];
}

}  // namespace efficiencies_section

RunSection sections::efficiencies() {
  using namespace efficiencies_section;
  return {.findings = findings, .tables = tables, .figures = figures, .rank_figures = rank_figures};
}

}  // namespace paceline::analysis
