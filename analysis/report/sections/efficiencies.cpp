// How well the ranks use their time (POP), and how much of it each of them works.
#include <algorithm>
#include <cmath>

#include "analysis/report/sections.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace efficiencies_section {

constexpr double acceptable = 0.8;         // POP's threshold
constexpr double least_difference = 0.01;  // of a step; smaller ones are not drawn

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

// Beside the median rank, because beside the whole work the differences could not be read.
void charts(const RunAnalysis& run, std::vector<Chart>& out) {
  if (!run.efficiencies || run.per_rank.size() < 2 || run.iterations.count == 0) return;
  std::vector<double> work;  // seconds in an iteration
  for (const std::int64_t ns : run.efficiencies->useful_ns) {
    work.push_back(1e-9 * static_cast<double>(ns) / static_cast<double>(run.iterations.count));
  }
  std::vector<double> sorted = work;
  std::ranges::sort(sorted);
  const double median = 0.5 * (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]);
  const double step = 1e-9 * static_cast<double>(run.iterations.median_ns);
  if (std::max(sorted.back() - median, median - sorted.front()) < least_difference * step) return;
  Chart chart{.title = fmt::format("Work of each rank beside the median rank's, in a step of {}", seconds(step)),
              .kind = "bars",
              .picture = true};
  const auto holder = path_holder(run);
  for (std::size_t r = 0; r < work.size(); ++r) {
    const auto same = [r](const LateRank& late) { return late.rank == r; };
    const bool slow = std::ranges::any_of(run.lateness.late, same) || (holder && holder->rank == r);
    const double more = work[r] - median;
    chart.bars.push_back({fmt::format("rank {}", run.per_rank[r].rank), slow ? "slow" : "rank", 0, more,
                          fmt::format("{}{}", more < 0 ? "−" : "+", seconds(std::abs(more)))});
  }
  chart.height = work.size() > 16 ? 260 : 70 + 30 * static_cast<int>(work.size());
  out.push_back(std::move(chart));
}

}  // namespace efficiencies_section

RunSection sections::efficiencies() {
  using namespace efficiencies_section;
  return {.findings = findings, .tables = tables, .figures = figures, .rank_figures = rank_figures, .charts = charts};
}

}  // namespace paceline::analysis
