// SPDX-License-Identifier: Apache-2.0
// Where the time of a run went: the phases of each rank, and which of them shrink when ranks are added.
#include <algorithm>

#include "analysis/report/sections.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace breakdown_section {

// The sum of one phase over the ranks, and of their wall times. A rank's may be as long as an integer can hold.
struct PhaseSum {
  double ns = 0, wall_ns = 0;
  double of_wall() const { return wall_ns > 0 ? ns / wall_ns : 0; }
};

PhaseSum sum_of(const RunAnalysis& run, Phase phase) {
  PhaseSum sum;
  for (const auto& rank : run.per_rank) {
    sum.ns += static_cast<double>(rank.phase_ns[static_cast<std::size_t>(phase)]);
    sum.wall_ns += static_cast<double>(rank.wall_ns);
  }
  return sum;
}

std::string mean_duration(const PhaseSum& sum, const RunAnalysis& run) {
  return duration(static_cast<std::int64_t>(sum.ns / static_cast<double>(run.per_rank.size())));
}

double mean_seconds(const PhaseSum& sum, const RunAnalysis& run) {
  return 1e-9 * sum.ns / static_cast<double>(run.per_rank.size());
}

// What the serial share of a 1-rank run bounds. The bound has an interval, and none where s may be nearly 0.
std::string serial_share_text(const Breakdown& breakdown) {
  const double s = breakdown.serial_share;
  const auto& ci95 = breakdown.serial_share_ci95;
  if (s <= 0) return "";
  std::string text = fmt::format(" The serial share is s = {}.", with_interval(fixed(s, 4), ci95, 4));
  if (s < least_bounding_share) return text;
  text += fmt::format(" By Amdahl's law alone, the speed-up cannot exceed {}", significant(1 / s, 3));
  if (ci95) {
    text += ci95->low < least_bounding_share
                ? fmt::format(" (95 %: at least {})", significant(1 / ci95->high, 3))
                : fmt::format(" (95 %: {}–{})", significant(1 / ci95->high, 3), significant(1 / ci95->low, 3));
  }
  return text + " on any number of ranks.";
}

// How much of the communication is waiting, where that is a quarter of it or more.
std::string waiting_text(const RunAnalysis& run) {
  double waited_ns = 0, blocked_ns = 0;
  for (const RankWaits& waits : run.waits) {
    waited_ns += static_cast<double>(waits.waited_ns), blocked_ns += static_cast<double>(waits.blocked_ns);
  }
  const double waited = blocked_ns > 0 ? waited_ns / blocked_ns : 0;
  return waited < 0.25
             ? ""
             : fmt::format(" {} of the time in collectives is waiting for the last rank to arrive.", percent(waited));
}

// The time of the phase `other` in the iterations of all ranks.
std::int64_t other_in_iterations_ns(const RunAnalysis& run) {
  std::int64_t ns = 0;
  for (const RankSummary& rank : run.per_rank) {
    for (const Iteration& one : rank.iterations) ns += one.phase_ns[static_cast<std::size_t>(Phase::other)];
  }
  return ns;
}

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  if (run.breakdown) {
    std::string text = breakdown_sentence(run);
    if (run.ranks == 1 && run.ended) text += serial_share_text(*run.breakdown);
    out.push_back({Severity::info, std::move(text)});
  }
  if (run.communication_share_of_step) {
    const double s = *run.communication_share_of_step;
    const bool has_gpus = std::ranges::any_of(run.per_rank, [](const auto& rank) { return rank.gpu.has_value(); });
    std::string text =
        fmt::format("Allreduce and other communication take {} of a step.{}", percent(s), waiting_text(run));
    if (has_gpus) {
      // Their share is no serial share: GPUs communicate while the main threads go on.
      text = fmt::format(
          "The main threads spend {} of a step on allreduce and other communication. Communication that "
          "runs on GPUs is not included.",
          percent(s));
    } else if (s >= least_bounding_share && run.can_be_compared()) {
      // No cost: a remark on the figure, which stands among the details.
      out.push_back({.text = fmt::format("Lectures read communication's share of a step, {}, as the serial share of "
                                         "Amdahl's law, which would limit the speed-up over one rank to {}. That holds "
                                         "only if the share stays the same as ranks are added.",
                                         percent(s), significant(1 / s, 3))});
    }
    out.push_back({.severity = s > 0.25 ? Severity::warning : Severity::info,
                   .text = std::move(text),
                   .cost_s = run.breakdown ? std::optional(1e-9 * static_cast<double>(run.breakdown->overhead_ns))
                                           : std::nullopt});
  }
  if (const PhaseSum preprocess = sum_of(run, Phase::preprocess); preprocess.of_wall() > 0.05) {
    out.push_back({.severity = Severity::warning,
                   .text = fmt::format("The training waits for input during {} of the time. More loader threads would "
                                       "hide this, or deeper prefetching where only single batches are late.",
                                       percent(preprocess.of_wall())),
                   .cost_s = mean_seconds(preprocess, run)});
  }
  if (const PhaseSum startup = sum_of(run, Phase::startup); startup.of_wall() > 0.1) {
    out.push_back({.severity = Severity::info,
                   .text = fmt::format("Start-up takes {} of the wall time ({}). Its share is smaller in longer runs.",
                                       percent(startup.of_wall()), mean_duration(startup, run)),
                   .cost_s = mean_seconds(startup, run)});
  }
  const PhaseSum other = sum_of(run, Phase::other);
  if (run.iterations.count > 0 && other.of_wall() > 0.02) {
    const double outside_ns = other.ns - static_cast<double>(other_in_iterations_ns(run));
    const std::string outside = 2 * outside_ns < other.ns ? ""
                                                          : fmt::format(", {} of it outside of the iterations",
                                                                        mean_duration({.ns = outside_ns}, run));
    out.push_back({.severity = Severity::warning,
                   .text = fmt::format(
                       "{} of the time ({}) belongs to no known phase{}. {} around that code would name its phases.",
                       percent(other.of_wall()), mean_duration(other, run), outside, ranges_name(run)),
                   .cost_s = mean_seconds(other, run)});
  }
}

bool is_shown(const RunAnalysis& run, Phase phase) {
  if (phase == Phase::communication && run.ranks > 1) return run.communication_observed;
  return std::ranges::any_of(run.per_rank,
                             [&](const auto& rank) { return rank.phase_ns[static_cast<std::size_t>(phase)] > 0; });
}

std::string time_of_losses(const RankSummary& rank) {
  if (!rank.losses.main_thread) return no_value;
  if (!rank.losses.located) return "at unknown times";
  return rank.losses.main_ns > 0 ? duration(rank.losses.main_ns) : "single events";
}

// A few ranks stand side by side as columns, with shares.
void ranks_as_columns(const RunAnalysis& run, const std::vector<std::size_t>& phases, bool any_lost, Table& table) {
  table.columns.emplace_back("phase");
  std::vector<std::string> wall = {"wall time"}, lost = {"events lost, in no phase"};
  for (const auto& rank : run.per_rank) {
    table.columns.push_back(fmt::format("rank {}{}", rank.rank, on_host(rank)));
    wall.push_back(duration(rank.wall_ns));
    lost.push_back(time_of_losses(rank));
  }
  for (const std::size_t p : phases) {
    std::vector<std::string> row = {std::string(phase_name(static_cast<Phase>(p)))};
    for (const auto& rank : run.per_rank) row.push_back(with_share(rank.phase_ns[p], rank.wall_ns));
    table.rows.push_back(std::move(row));
  }
  if (!run.communication_observed) {
    table.rows.emplace_back(table.columns.size(), "not observed").front() = phase_name(Phase::communication);
  }
  if (any_lost) table.rows.push_back(std::move(lost));
  table.rows.push_back(std::move(wall));
  table.sums = 1;
}

void ranks_as_rows(const RunAnalysis& run, const std::vector<std::size_t>& phases, bool any_lost, Table& table) {
  table.columns = {"rank", "host", "wall"};
  table.text_columns = 2;
  for (const std::size_t p : phases) table.columns.emplace_back(phase_name(static_cast<Phase>(p)));
  if (any_lost) table.columns.emplace_back("events lost");
  for (const auto& rank : run.per_rank) {
    std::vector<std::string> row = {std::to_string(rank.rank), rank.host, duration(rank.wall_ns)};
    for (const std::size_t p : phases) row.push_back(duration(rank.phase_ns[p]));
    if (any_lost) row.push_back(time_of_losses(rank));
    table.rows.push_back(std::move(row));
  }
}

Table phases_table(const RunAnalysis& run) {
  constexpr std::size_t most_columns = 6;
  Table table{
      .id = "phases", .title = "Phases of each rank", .note = "The phases of a rank add up to its wall time exactly."};
  std::vector<std::size_t> shown;
  for (std::size_t p = 0; p < phase_count; ++p) {
    if (is_shown(run, static_cast<Phase>(p))) shown.push_back(p);
  }
  const bool any_lost = std::ranges::any_of(run.per_rank, [](const auto& rank) { return rank.losses.main_thread; });
  if (any_lost) table.note += " Time in which events of the main thread were lost belongs to no phase.";
  (run.per_rank.size() <= most_columns ? ranks_as_columns : ranks_as_rows)(run, shown, any_lost, table);
  return table;
}

Table breakdown_table(const RunAnalysis& run) {
  Table table{.id = "breakdown",
              .title = "What shrinks when ranks are added",
              .columns = {"time in", "counts as", "mean over ranks", "share"},
              .text_columns = 2,
              .note = "parallel + serial + overhead = wall time, exactly."};
  if (!run.breakdown) return table;
  const Breakdown& b = *run.breakdown;
  const auto add = [&](const std::string& name, const char* kind, std::int64_t ns) {
    table.rows.push_back({name, kind, duration(ns), percent(share(ns, b.wall_ns))});
  };
  for (const auto& row : b.rows) {
    const bool twice = std::ranges::count(b.rows, row.phase, &BreakdownRow::phase) > 1;
    const char* where = !twice ? "" : row.inside_iterations ? ", in iterations" : ", outside iterations";
    add(std::string(phase_name(row.phase)) + where, counts_as_name(row.counts_as), row.ns);
  }
  add("all parallel", "1/N with N ranks", b.parallel_ns);
  add("all serial", "stays", b.serial_ns);
  if (run.communication_observed) {
    add("all overhead", "comes with N > 1", b.overhead_ns);
  } else {
    table.rows.push_back({"all overhead", "comes with N > 1", "not observed", ""});
  }
  add("wall time", "", b.wall_ns);
  table.sums = 4;
  if (run.global_batch_kept) table.note += " The runs share one global batch, so the optimizer counts as serial.";
  return table;
}

void tables(const RunAnalysis& run, std::vector<Table>& out) {
  out.push_back(phases_table(run));
  out.push_back(breakdown_table(run));
}

void figures(const RunAnalysis& run, Json& out) {
  out["communication_observed"] = run.communication_observed;
  set(out, "communication_share_of_step", run.communication_share_of_step);
  if (!run.breakdown) return;
  const Breakdown& b = *run.breakdown;
  Json& breakdown = out["breakdown"] = {{"wall_ns", b.wall_ns},
                                        {"parallel_ns", b.parallel_ns},
                                        {"serial_ns", b.serial_ns},
                                        {"serial_share", b.serial_share},
                                        {"rows", Json::array()}};
  if (run.communication_observed) breakdown["overhead_ns"] = b.overhead_ns;  // unknown is not 0
  set(breakdown, "serial_share_ci95", b.serial_share_ci95);
  for (const auto& row : b.rows) {
    breakdown["rows"].push_back({{"phase", phase_name(row.phase)},
                                 {"in_iterations", row.inside_iterations},
                                 {"counts_as", counts_as_name(row.counts_as)},
                                 {"ns", row.ns}});
  }
}

// A phase that was never seen is absent rather than 0; `other` is what remains, and always there.
void rank_figures(const RunAnalysis& run, std::size_t r, Json& out) {
  const RankSummary& rank = run.per_rank[r];
  Json& phases = out["phases"] = Json::object();
  for (std::size_t p = 0; p < phase_count; ++p) {
    const auto phase = static_cast<Phase>(p);
    const bool seen = rank.phase_ns[p] > 0 || phase == Phase::other ||
                      (phase == Phase::communication && run.communication_observed && run.ranks > 1);
    if (seen) phases[std::string(phase_name(phase))] = rank.phase_ns[p];
  }
}

// What more ranks do not shorten. The parallel work is left out: beside it, the seconds that matter could not be read.
void lasting_chart(const RunAnalysis& run, std::vector<Chart>& out) {
  if (!run.breakdown) return;
  const Breakdown& b = *run.breakdown;
  Chart chart{.title = fmt::format("Seconds that more ranks do not shorten, of {} {}", duration(b.wall_ns),
                                   run.ranks > 1 ? "of wall time (mean over ranks)" : "of wall time"),
              .kind = "lasting",
              .picture = true};
  for (const BreakdownRow& row : b.rows) {
    if (row.counts_as == CountsAs::parallel || share(row.ns, b.wall_ns) < 0.001) continue;
    std::string label(phase_name(row.phase));
    if (std::ranges::count(b.rows, row.phase, &BreakdownRow::phase) > 1) {
      label += row.inside_iterations ? ", in iterations" : ", outside iterations";
    }
    chart.bars.push_back({std::move(label), std::string(phase_name(row.phase)), 0, 1e-9 * static_cast<double>(row.ns),
                          with_share(row.ns, b.wall_ns)});
  }
  chart.height = 70 + 30 * static_cast<int>(chart.bars.size());
  const bool worth_a_look = share(b.serial_ns + b.overhead_ns, b.wall_ns) >= 0.01;
  if (worth_a_look && !chart.bars.empty()) out.push_back(std::move(chart));
}

void charts(const RunAnalysis& run, std::vector<Chart>& out) {
  lasting_chart(run, out);
  nlohmann::json phases = nlohmann::json::array(), ranks = nlohmann::json::array();
  for (const auto& rank : run.per_rank) ranks.push_back(fmt::format("rank {}", rank.rank));
  const auto add = [&](std::string_view name, auto&& ns_of) {
    nlohmann::json values = nlohmann::json::array();
    for (const auto& rank : run.per_rank) values.push_back(1e-9 * static_cast<double>(ns_of(rank)));
    if (std::ranges::any_of(run.per_rank, [&](const auto& rank) { return ns_of(rank) > 0; })) {
      phases.push_back({{"name", name}, {"seconds", std::move(values)}});
    }
  };
  for (std::size_t p = 0; p < phase_count; ++p) {
    add(phase_name(static_cast<Phase>(p)), [p](const RankSummary& rank) { return rank.phase_ns[p]; });
  }
  add("events lost", [](const RankSummary& rank) { return rank.losses.main_ns; });
  out.push_back({.title = "Phases of each rank, seconds of wall time",
                 .kind = "phases",
                 .data = {{"ranks", ranks}, {"phases", phases}},
                 .height = run.per_rank.size() > 16 ? 320 : 110 + 34 * static_cast<int>(run.per_rank.size()),
                 .wide = true,
                 .picture = true});
}

}  // namespace breakdown_section

RunSection sections::breakdown() {
  using namespace breakdown_section;
  return {findings, tables, figures, rank_figures, charts};
}

std::string breakdown_sentence(const RunAnalysis& run) {
  const Breakdown& b = *run.breakdown;
  const auto part = [&](std::int64_t ns) {
    return fmt::format("{} ({})", duration(ns), percent(share(ns, b.wall_ns)));
  };
  std::string text = fmt::format("Of the wall time of {}{}, {} shrink when ranks are added", duration(b.wall_ns),
                                 run.ranks > 1 ? ", the mean over the ranks" : "", part(b.parallel_ns));
  if (run.ranks > 1 && run.communication_observed) {
    return text + fmt::format(", {} stay the same, and {} are communication and waiting for other ranks.",
                              part(b.serial_ns), part(b.overhead_ns));
  }
  return text + fmt::format(" and {} stay the same.", part(b.serial_ns));
}

}  // namespace paceline::analysis
