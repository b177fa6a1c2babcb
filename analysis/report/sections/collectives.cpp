// SPDX-License-Identifier: Apache-2.0
// The collectives of a run by operation and size, and what is not known of its communication.
#include <algorithm>

#include "analysis/report/sections.h"
#include "analysis/report/values.h"
#include "analysis/run/run_links.h"

namespace paceline::analysis {
namespace collectives_section {

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  std::uint64_t unobserved = 0;
  for (const RankSummary& rank : run.per_rank) unobserved = std::max(unobserved, rank.unobserved);
  if (!run.communication_observed && unobserved > 0) {
    out.push_back({Severity::warning,
                   fmt::format("Communication was not observed: {} of a rank passed no function of Python, as in code "
                               "of torch.compile, so their time is part of other phases. PyTorch 2.15 and newer report "
                               "them to the recorder.",
                               plural(unobserved, "collective", "collectives"))});
  } else if (!run.communication_observed) {
    const char* const sees =
        run.foreign() ? ""
                      : "The recorder sees MPI calls and NVTX ranges, and PyTorch's collectives with `paceline "
                        "record --pytorch`. ";
    out.push_back({Severity::warning,
                   fmt::format("Communication was not observed: no source recorded any, so its time is part of other "
                               "phases. {}Put a range named \"allreduce\" around the calls of other libraries.",
                               sees)});
  }
  if (run.unmatched_calls > 0 && run.ranks > 1) {
    out.push_back(
        {Severity::warning, fmt::format("{} no partner on other ranks and {} left out of waits and transfers.",
                                        plural(run.unmatched_calls, "collective call has", "collective calls have"),
                                        run.unmatched_calls == 1 ? "is" : "are")});
  }
  std::uint64_t enqueued = 0;
  for (const auto& row : run.collectives) {
    if (row.operation.starts_with("nccl")) enqueued += row.count - row.timed;
  }
  if (enqueued > 0) {
    out.push_back({Severity::warning,
                   fmt::format("{} recorded when enqueued, but not when running on the device, so waits and transfers "
                               "are not known. Record CUDA as well{}.",
                               plural(enqueued, "NCCL collective was", "NCCL collectives were"),
                               run.foreign() ? "" : ", or record with --nccl-kernel-channels")});
  }
}

void tables(const RunAnalysis& run, std::vector<Table>& out) {
  Table table{
      .id = "collectives",
      .title = "Collectives",
      .columns = {"operation", "size", "ranks", "count", "wait a rank", "transfer", "transfer in all",
                  "algorithm bandwidth", "bus bandwidth"},
      .note =
          "Wait: from the rank's own start to the start of the last rank, mean over calls; for a non-blocking "
          "collective, only the part spent in the call that completed it. Of several that are in flight together, the "
          "last one that the rank awaited has the wait. Transfer: from the last start to the last "
          "end, mean over collectives. Only collectives whose times are known count. Algorithm bandwidth: "
          "bytes/transfer. "
          "Bus bandwidth: that × 2(n−1)/n for allreduce (nccl-tests), which compares with the speed of a link."};
  const bool link_known = std::ranges::any_of(
      run.collectives, [&](const CollectiveRow& row) { return rated_link_of(run, row).has_value(); });
  if (link_known) {
    table.columns.emplace_back("of the link");
    table.note += " Of the link: bus bandwidth ÷ the rated speed of the link that limits the collective.";
  }
  for (const auto& row : run.collectives) {
    const auto timed = static_cast<double>(row.timed);
    const bool known = row.timed > 0;
    table.rows.push_back({row.operation, row.bytes > 0 ? bytes(static_cast<double>(row.bytes)) : no_value,
                          std::to_string(row.members), count(static_cast<double>(row.count)),
                          known ? seconds(1e-9 * static_cast<double>(row.wait_ns) / (timed * row.members)) : no_value,
                          known ? seconds(1e-9 * static_cast<double>(row.transfer_ns) / timed) : no_value,
                          known ? duration(row.transfer_ns) : no_value,
                          row.busbw_bytes_per_s > 0 ? bytes_per_second(row.algbw_bytes_per_s()) : no_value,
                          row.busbw_bytes_per_s > 0 ? bytes_per_second(row.busbw_bytes_per_s) : no_value});
    if (!link_known) continue;
    const auto link = rated_link_of(run, row);
    table.rows.back().push_back(link && row.busbw_bytes_per_s > 0 ? percent(row.busbw_bytes_per_s / link->bytes_per_s)
                                                                  : no_value);
  }
  out.push_back(std::move(table));
}

void figures(const RunAnalysis& run, Json& out) {
  out["collectives"] = Json::array();
  for (const auto& row : run.collectives) {
    Json collective = {
        {"operation", row.operation}, {"bytes", row.bytes}, {"count", row.count}, {"members", row.members}};
    if (row.timed > 0) {
      collective["wait_ns"] = row.wait_ns;
      collective["transfer_ns"] = row.transfer_ns;
    }
    if (row.timed < row.count) collective["timed"] = row.timed;
    if (row.busbw_bytes_per_s > 0) collective["algbw_bytes_per_s"] = row.algbw_bytes_per_s();
    if (row.busbw_bytes_per_s > 0) collective["busbw_bytes_per_s"] = row.busbw_bytes_per_s;
    if (const auto link = rated_link_of(run, row)) {
      collective["link"] = link->source;
      collective["link_bytes_per_s"] = link->bytes_per_s;
      if (row.busbw_bytes_per_s > 0) collective["link_share"] = row.busbw_bytes_per_s / link->bytes_per_s;
    }
    out["collectives"].push_back(std::move(collective));
  }
  if (run.unmatched_calls > 0) out["unmatched_collective_calls"] = run.unmatched_calls;
}

}  // namespace collectives_section

RunSection sections::collectives() {
  using namespace collectives_section;
  return {.findings = findings, .tables = tables, .figures = figures};
}

}  // namespace paceline::analysis
