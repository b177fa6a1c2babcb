// SPDX-License-Identifier: Apache-2.0
// The time model T = fixed + epochs × epoch, from runs of different lengths, and the speed-up of long runs.
#include <algorithm>

#include "analysis/report/sections.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace time_model_section {

std::string row_text(const TimeModelRow& row) {
  return fmt::format(
      "{}: {} s an epoch and {}", plural(static_cast<std::size_t>(row.ranks), "rank", "ranks"),
      with_interval(fixed(row.model.per_epoch_s, 3), row.per_epoch_ci95, 3),
      row.fixed_cut ? "no time before and beside training that exceeds the noise"
                    : with_interval(fixed(row.model.fixed_s, 2), row.fixed_ci95, 2) + " s before and beside training");
}

std::string limit_text(const Scaling& scaling, const TimeModelRow& row) {
  const TimeModelRow& one = scaling.time_model[*row.one];
  std::string text = fmt::format("The speed-up of long runs on {} ranks tends to {}/{} = {}", row.ranks,
                                 fixed(one.model.per_epoch_s, 3), fixed(row.model.per_epoch_s, 3),
                                 with_interval(fixed(*row.speedup_limit, 3), row.speedup_limit_ci95, 3));
  if (!row.differences.empty())
    text += fmt::format(" (between runs that differ in {})", differences_text(row.differences));
  text += ".";
  const ScalingPoint& shortest = scaling.points[row.points.front()];
  const bool more_fixed = row.fixed_ci95 && one.fixed_ci95 ? row.fixed_ci95->low > one.fixed_ci95->high
                                                           : row.model.fixed_s > one.model.fixed_s;
  if (shortest.speedup && *shortest.speedup < *row.speedup_limit && more_fixed) {
    const auto fixed_text = [](double s) { return fixed(s, s >= 10 ? 0 : 1); };
    text += fmt::format(
        " The {} s that the {}-rank program spends before and beside training, against {} s on 1 rank, explain why "
        "the run of {} shows only {}.",
        fixed_text(row.model.fixed_s), row.ranks, fixed_text(one.model.fixed_s), work_text(shortest),
        fixed(*shortest.speedup, 2));
  }
  return text;
}

void findings(const Report& report, SentenceList& out) {
  constexpr std::size_t most_rows = 8;
  const Scaling& scaling = report.scaling;
  for (const int ranks : scaling.no_time_model) {
    out.say("no time model", Severity::warning,
            fmt::format("No time model for {}: the runs of more epochs did not take longer.",
                        plural(static_cast<std::size_t>(ranks), "rank", "ranks")));
  }
  const auto& rows = scaling.time_model;
  if (rows.empty()) return;
  std::string text = "Runs of different lengths give both terms of T = fixed + epochs × epoch: ";
  for (std::size_t i = 0; i < std::min(rows.size(), most_rows); ++i) text += (i > 0 ? "; " : "") + row_text(rows[i]);
  if (rows.size() > most_rows) text += fmt::format("; {} more are in the table below", rows.size() - most_rows);
  out.say("time model", Severity::info, text + ".");
  for (const auto& row : rows) {
    if (!row.speedup_limit) continue;
    // The fixed time beyond a perfect division of that of one rank is what a short run loses.
    const double lost_s = row.model.fixed_s - rows[*row.one].model.fixed_s / row.ranks;
    out.say("long runs", Severity::info, limit_text(scaling, row), lost_s > 0 ? std::optional(lost_s) : std::nullopt);
  }
}

void tables(const Report& report, std::vector<Table>& out) {
  Table table{.id = "time-model",
              .title = "Time model: T = fixed + epochs × epoch",
              .columns = {"ranks", "fixed", "an epoch", "S of long runs"},
              .text_columns = 0,
              .note =
                  "From runs of different lengths, in seconds. Fixed is the time before and beside training. Brackets "
                  "hold the 95 % interval."};
  const auto three = [](double value) { return fixed(value, 3); };
  for (const auto& row : report.scaling.time_model) {
    table.rows.push_back({std::to_string(row.ranks),
                          with_range(row.model.fixed_s, row.fixed_ci95, [](double s) { return fixed(s, 2); }) + " s",
                          with_range(row.model.per_epoch_s, row.per_epoch_ci95, three) + " s",
                          with_range(row.speedup_limit, row.speedup_limit_ci95, three)});
  }
  out.push_back(std::move(table));
}

void figures(const Report& report, Json& out) {
  const Scaling& scaling = report.scaling;
  for (const auto& row : scaling.time_model) {
    Json entry = {{"ranks", row.ranks}, {"fixed_s", row.model.fixed_s}, {"per_epoch_s", row.model.per_epoch_s}};
    set(entry, "fixed_s_ci95", row.fixed_ci95);
    set(entry, "per_epoch_s_ci95", row.per_epoch_ci95);
    set(entry, "speedup_limit", row.speedup_limit);
    set(entry, "speedup_limit_ci95", row.speedup_limit_ci95);
    if (!row.differences.empty()) entry["differences"] = differences_json(row.differences);
    out["time_model"].push_back(std::move(entry));
  }
  if (!scaling.speedup_limit) return;
  set(out, "speedup_limit", scaling.speedup_limit);
  set(out, "speedup_limit_ci95", scaling.speedup_limit_ci95);
  out["speedup_limit_from"] = scaling.limit_from_time_model ? "time_model" : scaling.limit_from_usl ? "usl" : "amdahl";
}

}  // namespace time_model_section

ScalingSection sections::time_model() {
  using namespace time_model_section;
  return {.findings = findings, .tables = tables, .figures = figures};
}

}  // namespace paceline::analysis
