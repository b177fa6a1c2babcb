// SPDX-License-Identifier: Apache-2.0
// Where the time of a step goes by kind of layer, beside what the machine can do at most (a roofline as a table).

#include "analysis/report/sections.h"
#include "analysis/report/values.h"
#include "analysis/statistics/statistics.h"

namespace paceline::analysis {
namespace layers_section {

// Adds the rate of the work and what part of the peak it is; "–" for layers without such work.
void add_rate(double amount, double ns, const std::optional<double>& peak, const char* unit,
              std::vector<std::string>& row) {
  const bool known = amount > 0 && ns > 0;
  const double rate = known ? amount / (1e-9 * ns) : 0;
  row.push_back(known ? quantity(rate, "") + unit : no_value);
  if (peak) row.push_back(known ? fixed(rate / *peak, 2) : no_value);
}

void tables(const RunAnalysis& run, std::vector<Table>& out) {
  const RunLayers& layers = run.layers;
  Table table{.id = "layers",
              .title = "Layers beside the machine's limits",
              .columns = {"layers", "pass", "time in an iteration", "operations", "bytes", "operations/s"},
              .text_columns = 2,
              .note =
                  "Of a rank, mean over the ranks and over the iterations after the warm-up. The operations are those "
                  "of the direct algorithm; a faster one, such as Winograd's, may exceed the peak. The bytes count "
                  "each tensor of a layer once, as if nothing stayed in a cache."};
  if (layers.peak_flops) {
    table.columns.emplace_back("÷ peak");
    table.note += fmt::format(" A rank's peak is {}.", quantity(*layers.peak_flops, "") + "FLOP/s");
  }
  table.columns.emplace_back("bytes/s");
  if (layers.peak_bytes) {
    table.columns.emplace_back("÷ peak");
    table.note += fmt::format(" The peak of its memory is {}.", quantity(*layers.peak_bytes, "B/s"));
  }
  const double mean_ns = 1e9 * mean(run.iterations.steady());
  for (const LayerWork& work : layers.work) {
    auto& row = table.rows.emplace_back(std::vector<std::string>{
        work.kind, work.backward ? "backward" : "forward",
        with_share(static_cast<std::int64_t>(work.iteration_ns), static_cast<std::int64_t>(mean_ns)),
        work.flops > 0 ? quantity(work.flops, "") + "FLOP" : no_value, quantity(work.bytes, "B")});
    add_rate(work.flops, work.iteration_ns, layers.peak_flops, "FLOP/s", row);
    add_rate(work.bytes, work.iteration_ns, layers.peak_bytes, "B/s", row);
  }
  out.push_back(std::move(table));
}

void figures(const RunAnalysis& run, Json& out) {
  const RunLayers& layers = run.layers;
  if (layers.work.empty()) return;
  Json rows = Json::array();
  for (const LayerWork& work : layers.work) {
    rows.push_back({{"kind", work.kind},
                    {"pass", work.backward ? "backward" : "forward"},
                    {"iteration_ns", work.iteration_ns},
                    {"flops", work.flops},
                    {"bytes", work.bytes}});
  }
  out["layers"] = {{"work", std::move(rows)}};
  set(out["layers"], "peak_flops", layers.peak_flops);
  set(out["layers"], "peak_bytes_per_s", layers.peak_bytes);
}

}  // namespace layers_section

RunSection sections::layers() {
  using namespace layers_section;
  return {.tables = tables, .figures = figures};
}

}  // namespace paceline::analysis
