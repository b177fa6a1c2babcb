// SPDX-License-Identifier: Apache-2.0
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

// Why the streams were idle between two pieces of work.
void idle_table(const RunAnalysis& run, std::vector<Table>& out) {
  Table table{.id = "gpu_idle",
              .title = "Idle streams",
              .columns = {"rank", "stream", "idle", "host wait", "kernel wait", "other"},
              .note =
                  "Host wait: the next work was launched after the last one had ended. Kernel wait: it followed "
                  "within 30 ns. Other: it was launched in time, and waited for another stream or for the device."};
  for (const auto& rank : run.per_rank) {
    for (const StreamIdle& of : rank.stream_idle) {
      const std::int64_t sum = of.host_wait_ns + of.kernel_wait_ns + of.other_ns;
      table.rows.push_back({std::to_string(rank.rank), of.stream, duration(sum), with_share(of.host_wait_ns, sum),
                            with_share(of.kernel_wait_ns, sum), with_share(of.other_ns, sum)});
    }
  }
  out.push_back(std::move(table));
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
  idle_table(run, out);
}

Json distribution_json(const Distribution& of) {
  return {{"count", of.count}, {"mean", of.mean},     {"stddev", of.stddev}, {"min", of.minimum},
          {"p25", of.p25},     {"median", of.median}, {"p75", of.p75},       {"max", of.maximum}};
}

void gpu_rank_figures(const RunAnalysis& run, std::size_t r, Json& out) {
  const auto& gpu = run.per_rank[r].gpu;
  if (!gpu) return;
  out["gpu"] = {{"span_ns", gpu->span_ns},
                {"idle_ns", gpu->idle_ns},
                {"compute_ns", gpu->compute_ns},
                {"noncompute_ns", gpu->noncompute_ns}};
  Json& kernels = out["gpu"]["kernels"] = Json::array();
  for (const KernelStatistics& kernel : run.per_rank[r].gpu_kernels) {
    kernels.push_back({{"name", kernel.name},
                       {"category", kernel.category},
                       {"count", kernel.count},
                       {"sum_ns", kernel.sum_ns},
                       {"min_ns", kernel.min_ns},
                       {"max_ns", kernel.max_ns},
                       {"mean_ns", kernel.mean_ns},
                       {"stddev_ns", kernel.stddev_ns}});
  }
  Json& idle = out["gpu"]["idle"] = Json::array();
  for (const StreamIdle& of : run.per_rank[r].stream_idle) {
    idle.push_back({{"stream", of.stream},
                    {"host_wait_ns", of.host_wait_ns},
                    {"kernel_wait_ns", of.kernel_wait_ns},
                    {"other_ns", of.other_ns}});
  }
  const auto& launches = run.per_rank[r].launches;
  if (!launches) return;
  const LaunchStatistics& statistics = launches->statistics;
  out["gpu"]["launches"] = {{"call_ns", distribution_json(statistics.call_ns)},
                            {"gpu_ns", distribution_json(statistics.gpu_ns)},
                            {"delay_ns", distribution_json(statistics.delay_ns)},
                            {"slow_calls", statistics.slow_calls},
                            {"late_starts", statistics.late_starts},
                            {"short_work", statistics.short_work}};
  Json& queues = out["gpu"]["queue"] = Json::array();
  for (const QueueStatistics& queue : launches->queues) {
    Json entry = distribution_json(queue.length);
    entry["stream"] = queue.stream;
    queues.push_back(std::move(entry));
  }
}

}  // namespace gpu_section

RunSection sections::overlap() {
  return {.tables = gpu_section::overlap_tables, .rank_figures = gpu_section::overlap_rank_figures};
}

RunSection sections::gpu() {
  return {.tables = gpu_section::gpu_tables, .rank_figures = gpu_section::gpu_rank_figures};
}

}  // namespace paceline::analysis
