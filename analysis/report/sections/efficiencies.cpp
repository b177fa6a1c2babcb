// SPDX-License-Identifier: Apache-2.0
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

struct CommunicationParts {
  double serialisation = 1, transfer = 1;
};

// Communication = serialisation max(u)/T_ideal × transfer T_ideal/T. T_ideal is the time with transfers that take none,
// by the replay of the run. The replay compares medians of iterations, so its ratio may lie a little outside of what is
// possible.
std::optional<CommunicationParts> communication_parts(const RunAnalysis& run) {
  if (!run.efficiencies || !run.what_if) return std::nullopt;
  const auto& predictions = run.what_if->predictions;
  const auto ideal = std::ranges::find(predictions, "bound: communication free", &Prediction::title);
  if (ideal == predictions.end()) return std::nullopt;
  const double communication = run.efficiencies->communication;
  const double transfer = std::clamp(ideal->ratio, communication, 1.0);
  return CommunicationParts{communication / transfer, transfer};
}

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
  if (const auto parts = communication_parts(run)) {
    table.rows.push_back({"serialisation: what waiting for each other leaves", percent(parts->serialisation)});
    table.rows.push_back({"transfer: what moving the bytes leaves", percent(parts->transfer)});
    table.note +=
        " Communication = serialisation × transfer. Transfer is the time of the iterations on a network that takes no "
        "time, by a replay of the run, ÷ the measured time.";
  }
  out.push_back(std::move(table));
}

void figures(const RunAnalysis& run, Json& out) {
  if (!run.efficiencies) return;
  out["efficiencies"] = {{"parallel", run.efficiencies->parallel},
                         {"load_balance", run.efficiencies->load_balance},
                         {"communication", run.efficiencies->communication}};
  if (const auto parts = communication_parts(run)) {
    out["efficiencies"]["serialisation"] = parts->serialisation;
    out["efficiencies"]["transfer"] = parts->transfer;
  }
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
  const double step = 1e-9 * static_cast<double>(run.iterations.steady_median_ns);
  if (std::max(sorted.back() - median, median - sorted.front()) < least_difference * step) return;
  Chart chart{.title = fmt::format("Work of each rank beside the median rank's, in a median step of {}", seconds(step)),
              .kind = "bars",
              .picture = true};
  for (std::size_t r = 0; r < work.size(); ++r) {
    const auto same = [r](const LateRank& late) { return late.rank == r; };
    const bool slow = std::ranges::any_of(run.lateness.late, same);
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
