// SPDX-License-Identifier: Apache-2.0
// Sharded optimizers: how much of the reduce-scatters and all-gathers is hidden. Compressed gradients: what compressing
// costs beside what it saves.
#include "analysis/run/exchanges.h"

#include "analysis/report/sections.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace exchanges_section {

std::string hidden_text(const ExchangeRow& row) {
  const double share = row.total_s > 0 ? row.hidden_s / row.total_s : 0;
  return share < 0.005 ? "none of it is hidden" : fmt::format("{} of it is hidden", percent(share));
}

void compression_finding(const Compression& c, std::vector<Finding>& out) {
  const bool pays = c.saved_s() >= c.work_s;
  const std::string rate =
      c.link_gbit ? fmt::format("a link of {:g} Gbit/s", *c.link_gbit) : "the rate of its exchanges";
  out.push_back({pays ? Severity::info : Severity::warning,
                 fmt::format("Compressing gradients takes {} in an iteration, and each rank sends {} instead of {}. At "
                             "{}, the exchange takes {} instead of {}, so compression {}.",
                             seconds(c.work_s), bytes(c.sent_bytes), bytes(c.plain_bytes), rate, seconds(c.exchange_s),
                             seconds(c.plain_exchange_s), pays ? "pays" : "costs more than it saves")});
}

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  const auto all = exchanges_of(run);
  if (!all) return;
  if (all->compression) compression_finding(*all->compression, out);
  const ExchangeRow *const scatter = all->find("reduce-scatter"), *const gather = all->find("all-gather");
  if (scatter == nullptr || gather == nullptr) return;
  out.push_back(
      {Severity::info,
       fmt::format("The optimizer is sharded: reduce-scatters take {} of an iteration, and {}; all-gathers "
                   "take {}, and {}.",
                   seconds(scatter->total_s), hidden_text(*scatter), seconds(gather->total_s), hidden_text(*gather))});
}

void tables(const RunAnalysis& run, std::vector<Table>& out) {
  const auto all = exchanges_of(run);
  if (!all) return;
  Table table{.id = "exchanges",
              .title = "Exchanges of the optimizer in an iteration",
              .columns = {"part", "calls", "bytes", "time", "hidden under compute", "exposed"},
              .note = "Means over the ranks. Waiting for late ranks counts as time of the exchange."};
  for (const ExchangeRow& row : all->rows) {
    const bool local = row.name == "compress" || row.name == "decompress";
    table.rows.push_back({row.name, fixed(row.calls, 1), row.bytes > 0 ? bytes(row.bytes) : no_value,
                          seconds(row.total_s), local ? no_value : seconds(row.hidden_s),
                          local ? no_value : seconds(row.exposed_s)});
  }
  out.push_back(std::move(table));
}

void figures(const RunAnalysis& run, Json& out) {
  const auto all = exchanges_of(run);
  if (!all) return;
  Json json = {{"parts", Json::array()}};
  for (const ExchangeRow& row : all->rows) {
    json["parts"].push_back({{"name", row.name},
                             {"calls", row.calls},
                             {"bytes", row.bytes},
                             {"total_s", row.total_s},
                             {"hidden_s", row.hidden_s},
                             {"exposed_s", row.exposed_s}});
  }
  if (const auto& c = all->compression) {
    json["compression"] = {{"work_s", c->work_s},         {"gradient_bytes", c->gradient_bytes},
                           {"sent_bytes", c->sent_bytes}, {"plain_bytes", c->plain_bytes},
                           {"exchange_s", c->exchange_s}, {"plain_exchange_s", c->plain_exchange_s},
                           {"saved_s", c->saved_s()}};
    set(json["compression"], "link_gbit", c->link_gbit);
  }
  out["exchanges"] = std::move(json);
}

}  // namespace exchanges_section

RunSection sections::exchanges() {
  return {.findings = exchanges_section::findings,
          .tables = exchanges_section::tables,
          .figures = exchanges_section::figures};
}

}  // namespace paceline::analysis
