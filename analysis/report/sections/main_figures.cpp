// SPDX-License-Identifier: Apache-2.0
// The main figures of a run in one table. Their JSON keys are those of the sections that they come from.
#include <algorithm>

#include "analysis/clocks/alignment.h"
#include "analysis/report/sections.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace main_figures_section {

void add_iterations(const RunAnalysis& run, Table& table) {
  const RunIterations& it = run.iterations;
  if (it.steady_images_per_s) {
    std::string value = images_per_second(*it.steady_images_per_s);
    if (it.steady_ci95) {
      value += fmt::format(" [{}–{}]", fixed(it.steady_ci95->low, 1), fixed(it.steady_ci95->high, 1));
    }
    table.rows.push_back(
        {fmt::format("throughput, steady (after {} of warm-up)", plural(it.warmup, "iteration", "iterations")), value});
  }
  if (it.count == 0) return;
  std::string iterations = count(static_cast<double>(it.count));
  if (const std::size_t left_out = run.losses.iterations.size(); left_out > 0) {
    iterations += fmt::format(" ({} left out: events lost)", count(static_cast<double>(left_out)));
  }
  table.rows.push_back({"iterations", iterations});
  if (it.flops_per_s) {
    std::string value = quantity(*it.flops_per_s, "") + "FLOP/s";
    if (it.flops_share_of_peak) value += fmt::format(" ({} of the peak)", percent(*it.flops_share_of_peak));
    table.rows.push_back({"floating-point operations, steady, all ranks", value});
  }
  table.rows.push_back({"iteration, median after the warm-up", duration(it.steady_median_ns)});
  table.rows.push_back({"iteration, 95th percentile", duration(it.p95_ns)});
}

// The loader put the ranks of other tools' traces on one clock: by which means, and with which error.
std::string clock_error(const RunAnalysis& run) {
  const auto any = [&](std::string_view source) {
    return std::ranges::any_of(run.per_rank, [&](const auto& rank) { return rank.clock_source == source; });
  };
  const std::string error = seconds(run.clock_error_ns * 1e-9);
  if (!run.foreign()) return error;
  if (any("none")) return "not known: some ranks share neither UTC nor collectives with the others";
  if (run.clock_error_ns >= unset_utc_error_ns) {
    return any("utc") ? "not known: aligned by UTC alone" : "not known: aligned by the tool that recorded them";
  }
  if (any("collectives")) return error + ", by the ends of collectives";
  return any("utc") ? error + ", by UTC" : error;
}

void tables(const RunAnalysis& run, std::vector<Table>& out) {
  Table table{.id = "figures", .title = "Main figures", .columns = {"figure", "value"}};
  const bool in_part = std::ranges::any_of(run.per_rank, [](const auto& rank) { return rank.span_ns > rank.wall_ns; });
  table.rows.push_back({in_part ? "wall time, recorded part" : "wall time", duration(run.wall_ns)});
  if (run.images) {
    table.rows.push_back({"images", count(*run.images)});
    if (run.wall_ns > 0) table.rows.push_back({"throughput, whole job", images_per_second(*run.images_per_s())});
  }
  add_iterations(run, table);
  if (run.accuracy) {
    table.rows.push_back({"test accuracy", percent(*run.accuracy)});
    table.rows.push_back({fmt::format("time to {:g} % accuracy", 100 * run.target_accuracy),
                          run.seconds_to_accuracy ? seconds(*run.seconds_to_accuracy) : "not reached"});
  }
  if (run.per_rank.size() > 1) {
    table.rows.push_back({"clock error between ranks, at most", clock_error(run)});
  }
  out.push_back(std::move(table));
}

}  // namespace main_figures_section

RunSection sections::main_figures() { return {.tables = main_figures_section::tables}; }

}  // namespace paceline::analysis
