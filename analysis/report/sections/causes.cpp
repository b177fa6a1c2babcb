// SPDX-License-Identifier: Apache-2.0
// Why time was lost: what ranks lost in collectives and without a CPU, and what slow iterations took longer, by cause.
#include <algorithm>

#include "analysis/report/cause_text.h"
#include "analysis/report/sections.h"
#include "analysis/report/values.h"
#include "analysis/text/lists.h"

namespace paceline::analysis {
namespace causes_section {

// The order of the columns; unknown comes last.
constexpr LossCause order[] = {LossCause::no_cpu,       LossCause::throttled,    LossCause::page_faults,
                               LossCause::input_output, LossCause::blocked,      LossCause::collecting,
                               LossCause::computing,    LossCause::moving_bytes, LossCause::unknown};

std::string time_text(double ns) { return duration(static_cast<std::int64_t>(ns)); }

// "3.50 s no CPU, 1.20 s bytes moving": the parts of at least 5 %, the largest first.
std::string parts_text(const LossParts& parts) {
  constexpr double least_named = 0.05;
  std::vector<LossCause> named;
  for (const LossCause cause : order) {
    if (parts[cause] > 0 && parts[cause] >= least_named * parts.sum()) named.push_back(cause);
  }
  std::ranges::stable_sort(named, std::greater(), [&](LossCause cause) { return parts[cause]; });
  std::vector<std::string> texts;
  for (const LossCause cause : named) texts.push_back(fmt::format("{} {}", time_text(parts[cause]), cause_name(cause)));
  return list_text(texts);
}

void slow_finding(const RunAnalysis& run, std::vector<Finding>& out) {
  const LongerCauses* slow = slow_iterations(run);
  if (slow == nullptr) return;
  Finding finding{.severity = Severity::warning,
                  .text = fmt::format("{}: {}{}.", capitalised(slow_iterations_text(*slow)), parts_text(slow->parts),
                                      run.ranks > 1 ? ", mean over the ranks" : ""),
                  .cost_s = 1e-9 * slow->excess_ns,
                  .kind = "slow iterations"};
  for (std::size_t i = 0; i < run.iterations.count; ++i) {
    if (!std::ranges::binary_search(slow->numbers, run.iterations.numbers[i])) continue;
    finding.places.push_back({.name = fmt::format("Iteration {}", run.iterations.numbers[i]),
                              .time = run.iterations.spans[i],
                              .iteration = run.iterations.numbers[i]});
  }
  out.push_back(std::move(finding));
}

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  if (!run.causes) return;
  const LossParts mean = run.causes->mean();
  if (mean.sum() > 0) {
    const bool starved = is_starved(run);
    std::string text = starved ? capitalised(starved_text(run)) + ". " : "";
    text += fmt::format("In collectives and without a CPU, a rank lost {} on average: {}.", time_text(mean.sum()),
                        parts_text(mean));
    if (!run.causes->exact) {
      text += " The scheduler's switches were not all recorded, so sums of the system stand for them.";
    }
    out.push_back({.severity = starved ? Severity::warning : Severity::info,
                   .text = std::move(text),
                   .cost_s = starved ? main_loss(run)->seconds : 1e-9 * mean.sum(),
                   .kind = starved ? "no CPU" : "causes"});
  }
  slow_finding(run, out);
}

std::vector<std::string> columns(std::vector<std::string> first) {
  for (const LossCause cause : order) first.push_back(cause_name(cause));
  first.emplace_back("lost");
  return first;
}

std::vector<std::string> cells(std::vector<std::string> first, const LossParts& parts) {
  for (const LossCause cause : order) first.push_back(parts[cause] > 0 ? time_text(parts[cause]) : no_value);
  first.push_back(time_text(parts.sum()));
  return first;
}

// Most runs have a few of the causes only.
void remove_empty_columns(Table& table) {
  if (table.rows.empty()) return;
  for (std::size_t column = table.columns.size(); column-- > 0;) {
    if (std::ranges::any_of(table.rows, [&](const auto& row) { return row[column] != no_value; })) continue;
    table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(column));
    for (auto& row : table.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  }
}

void tables(const RunAnalysis& run, std::vector<Table>& out) {
  if (!run.causes) return;
  Table table{.id = "lost-by-cause",
              .title = "Why time was lost",
              .columns = columns({"rank", "lost in"}),
              .text_columns = 2,
              .note =
                  "Waiting: what the last rank did longer than this one. Transfer: what the members did after the "
                  "last one had come. Own work: only the time without a CPU is lost. Each time has one cause."};
  for (std::size_t r = 0; r < run.per_rank.size(); ++r) {
    const RankCauses& rank = run.causes->ranks[r];
    const std::string number = std::to_string(run.per_rank[r].rank);
    if (rank.waiting.sum() > 0) table.rows.push_back(cells({number, "waiting"}, rank.waiting));
    if (rank.transfer.sum() > 0) table.rows.push_back(cells({number, "transfer"}, rank.transfer));
    if (rank.own.sum() > 0) table.rows.push_back(cells({number, "own work"}, rank.own));
  }
  remove_empty_columns(table);
  out.push_back(std::move(table));
  Table longer{.id = "longer-by-cause",
               .title = "Why iterations took longer",
               .columns = columns({"iterations", "against"}),
               .text_columns = 2,
               .note = "Added up over the iterations, mean over the ranks; against the mean of the other iterations."};
  if (const auto& slow = run.causes->slow) {
    longer.rows.push_back(cells({number_list(slow->numbers), "the usual ones"}, slow->parts));
  }
  if (const auto& changed = run.causes->changed) {
    longer.rows.push_back(cells({number_list(changed->numbers), "those before"}, changed->parts));
  }
  remove_empty_columns(longer);
  out.push_back(std::move(longer));
}

Json parts_json(const LossParts& parts) {
  Json out = Json::object();
  for (std::size_t i = 0; i < loss_cause_count; ++i) {
    if (parts.ns[i] > 0) out[loss_cause_key(static_cast<LossCause>(i))] = whole_number(std::round(parts.ns[i]));
  }
  return out;
}

// Where a rank or some iterations took longer.
void add_place(const std::optional<CausePlace>& place, const std::optional<CauseFunction>& function, Json& out) {
  if (place) {
    out["range"] = {{"name", place->range}, {"cause", loss_cause_key(place->cause)}, {"share", place->share}};
    if (place->after) out["range"]["after"] = true;
  }
  if (!function) return;
  Json& entry = out["function"] = {{"name", function->function}, {"share", function->share}, {"p", function->p}};
  if (!function->file.empty()) entry["file"] = function->file;
  if (function->line > 0) entry["line"] = function->line;
  if (!function->innermost.empty()) entry["innermost"] = function->innermost;
  if (!function->call_file.empty()) entry["call_file"] = function->call_file;
}

Json longer_json(const LongerCauses& longer) {
  Json out = {{"iterations", longer.numbers},
              {"excess_ns", whole_number(std::round(longer.excess_ns))},
              {"by_cause", parts_json(longer.parts)}};
  if (longer.rank) out["rank"] = *longer.rank;
  add_place(longer.place, longer.function, out);
  return out;
}

void figures(const RunAnalysis& run, Json& out) {
  if (!run.causes) return;
  Json& causes = out["causes"] = {{"exact", run.causes->exact}, {"lost_ns", parts_json(run.causes->mean())}};
  if (const auto& other = run.causes->other_program) {
    causes["other_program"] = {{"name", other->name}, {"cpu_s", other->cpu_s}, {"all_cpu_s", other->all_s}};
  }
  if (const auto loss = main_loss(run)) causes["main"] = loss_cause_key(loss->cause);
  if (run.causes->slow) causes["slow_iterations"] = longer_json(*run.causes->slow);
  if (run.causes->changed) causes["changed_iterations"] = longer_json(*run.causes->changed);
}

void rank_figures(const RunAnalysis& run, std::size_t r, Json& out) {
  if (!run.causes) return;
  const RankCauses& rank = run.causes->ranks[r];
  Json& causes = out["causes"] = {{"waiting_ns", parts_json(rank.waiting)},
                                  {"transfer_ns", parts_json(rank.transfer)},
                                  {"own_ns", parts_json(rank.own)},
                                  {"caused_ns", parts_json(rank.caused)}};
  add_place(rank.place, rank.function, causes);
}

}  // namespace causes_section

RunSection sections::causes() {
  using namespace causes_section;
  return {.findings = findings, .tables = tables, .figures = figures, .rank_figures = rank_figures};
}

}  // namespace paceline::analysis
