// Communication beside compute, and what the GPUs of each rank did.
#include "analysis/report/sections.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace gpu_section {

void overlap_tables(const RunAnalysis& run, std::vector<Table>& out) {
  Table table{.id = "overlap",
              .title = "Communication beside compute",
              .columns = {"rank", "communication", "hidden under compute"},
              .note = "Reported beside the phases, never added to them."};
  for (const auto& rank : run.per_rank) {
    if (!rank.overlap) continue;
    table.rows.push_back({std::to_string(rank.rank), duration(rank.overlap->communication_ns),
                          with_share(rank.overlap->hidden_ns, rank.overlap->communication_ns)});
  }
  out.push_back(std::move(table));
}

void overlap_rank_figures(const RunAnalysis& run, std::size_t r, Json& out) {
  const auto& overlap = run.per_rank[r].overlap;
  if (overlap) out["overlap"] = {{"communication_ns", overlap->communication_ns}, {"hidden_ns", overlap->hidden_ns}};
}

void gpu_tables(const RunAnalysis& run, std::vector<Table>& out) {
  Table table{.id = "gpu",
              .title = "GPU",
              .columns = {"rank", "first to last activity", "compute", "other work", "idle"},
              .note = "Other work: copies, fills, and communication without a compute kernel beside it."};
  for (const auto& rank : run.per_rank) {
    if (!rank.gpu) continue;
    const GpuUsage& gpu = *rank.gpu;
    table.rows.push_back({std::to_string(rank.rank), duration(gpu.span_ns), with_share(gpu.compute_ns, gpu.span_ns),
                          with_share(gpu.noncompute_ns, gpu.span_ns), with_share(gpu.idle_ns, gpu.span_ns)});
  }
  out.push_back(std::move(table));
}

void gpu_rank_figures(const RunAnalysis& run, std::size_t r, Json& out) {
  const auto& gpu = run.per_rank[r].gpu;
  if (!gpu) return;
  out["gpu"] = {{"span_ns", gpu->span_ns},
                {"idle_ns", gpu->idle_ns},
                {"compute_ns", gpu->compute_ns},
                {"noncompute_ns", gpu->noncompute_ns}};
}

}  // namespace gpu_section

RunSection sections::overlap() {
  return {.tables = gpu_section::overlap_tables, .rank_figures = gpu_section::overlap_rank_figures};
}

RunSection sections::gpu() {
  return {.tables = gpu_section::gpu_tables, .rank_figures = gpu_section::gpu_rank_figures};
}

}  // namespace paceline::analysis
