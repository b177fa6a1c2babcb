// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/changes.h"

#include <algorithm>

#include "analysis/report/cause_text.h"
#include "analysis/report/lateness_judgement.h"
#include "analysis/report/predictions.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace changes_parts {

const char* serial_remedy(Phase phase) {
  switch (phase) {
    case Phase::startup:
      return "a shorter start-up, or a longer run";
    case Phase::evaluate:
      return "evaluation divided among all ranks, or less often";
    case Phase::checkpoint:
      return "fewer checkpoints, or writing them in the background";
    case Phase::preprocess:
      return "input prepared by every rank for itself";
    case Phase::optimizer:
      return "an optimizer whose work is divided among the ranks";
    default:
      return "ranges around the unnamed code, to see what it does";
  }
}

// The serial phase that takes most in the run; nothing without a breakdown.
const BreakdownRow* largest_serial(const RunAnalysis& run) {
  if (!run.breakdown) return nullptr;
  const auto found = std::ranges::find(run.breakdown->rows, CountsAs::serial, &BreakdownRow::counts_as);
  return found == run.breakdown->rows.end() ? nullptr : &*found;
}

Table causes_table(const Report& report, const LostTime& lost) {
  Table table{
      .id = "causes",
      .title = fmt::format("What {} ranks lose to each cause", lost.ranks),
      .columns = {"cause", "costs", "S without it", "what would help"},
      .note = fmt::format("Seconds beyond a perfect division of the 1-rank run, mean over ranks. \"S without it\" "
                          "is the speed-up if this cause alone were gone; measured: {}.",
                          fixed(*report.scaling.points[lost.point].speedup, 2)),
      .last_is_text = true};
  for (const LostCause& cause : lost_causes(report, lost)) {
    const auto without = speed_up_without(report, lost, cause.seconds);
    table.rows.push_back(
        {cause.name, seconds(cause.seconds), or_none(without, [](double s) { return fixed(s, 2); }), cause.remedy});
  }
  return table;
}

// True where the same machine trains with the same results. Fewer bits and gradients of an earlier step change the
// results, and another network has to be bought.
bool keeps_results(const Prediction& prediction) {
  constexpr const char* others[] = {"--fp16", "--double-buffering", "--bandwidth", "--latency"};
  return std::ranges::none_of(others,
                              [&](const char* option) { return prediction.options.find(option) != std::string::npos; });
}

bool is_about_slow_ranks(const Prediction& prediction) {
  return prediction.options.find("--relieve") != std::string::npos ||
         prediction.options.find("--balanced") != std::string::npos;
}

// Which computation would pay, and not how to make it faster.
bool is_about_faster_work(const Prediction& prediction) { return prediction.options.starts_with("--faster"); }

}  // namespace changes_parts

LostTimeParts lost_parts(const Report& report, const LostTime& lost) {
  const RunAnalysis& run = report.runs[lost.many.front()];
  LostTimeParts parts{.serial_s = lost.serial_s,
                      .transfer_s = lost.overhead_s - lost.waiting_s,
                      .waiting_s = lost.waiting_s,
                      .slower_work_s = lost.slowdown_s};
  if (!run.causes) return parts;
  const auto take = [&](double& from_s, LossParts RankCauses::*part) {
    double ns = 0;
    for (const RankCauses& rank : run.causes->ranks) {
      ns += (rank.*part)[LossCause::no_cpu] + (rank.*part)[LossCause::throttled];
    }
    const double seconds =
        std::clamp(1e-9 * ns / static_cast<double>(run.causes->ranks.size()), 0.0, std::max(from_s, 0.0));
    from_s -= seconds;
    parts.no_cpu_s += seconds;
  };
  take(parts.transfer_s, &RankCauses::transfer);
  take(parts.waiting_s, &RankCauses::waiting);
  take(parts.slower_work_s, &RankCauses::own);
  return parts;
}

std::vector<LostCause> lost_causes(const Report& report, const LostTime& lost) {
  const RunAnalysis& run = report.runs[lost.many.front()];
  const LostTimeParts parts = lost_parts(report, lost);
  const BreakdownRow* serial = changes_parts::largest_serial(run);
  std::vector<LostCause> causes{
      {.name = serial == nullptr ? "serial work" : fmt::format("serial work, mostly {}", phase_name(serial->phase)),
       .seconds = parts.serial_s,
       .remedy = serial == nullptr ? "" : changes_parts::serial_remedy(serial->phase)},
      {.name = "transfer in communication",
       .seconds = parts.transfer_s,
       .remedy = "fewer bytes, larger buckets, or communication beside backward",
       .predicted = true},
      {.name = "waiting for the last rank",
       .seconds = parts.waiting_s,
       .remedy = "equal work and equal speed on all ranks",
       .predicted = true},
      {.name = "parallel work that became slower",
       .seconds = parts.slower_work_s,
       .remedy = !run.crowded_cpus.empty()                 ? "no more ranks on a host than it has CPUs for them"
                 : run.waiting_for_cpu.value_or(0) >= 0.05 ? "CPUs of its own for each rank, or fewer threads per rank"
                                                           : "one rank on each machine, or fewer threads per rank"},
      {.name = "threads that had no CPU",
       .seconds = parts.no_cpu_s,
       .remedy = run.causes && is_starved(run) ? starved_remedy(run) : "CPUs that no other program uses"}};
  std::erase_if(causes, [](const LostCause& cause) { return cause.seconds <= 0; });
  std::ranges::stable_sort(causes, std::greater(), &LostCause::seconds);
  return causes;
}

std::optional<double> speed_up_without(const Report& report, const LostTime& lost, double seconds) {
  const ScalingPoint& point = report.scaling.points[lost.point];
  const double left = point.seconds - seconds;
  if (!point.speedup || left <= 0) return std::nullopt;
  return *point.speedup * point.seconds / left;
}

double gain_s(const RunAnalysis& run, const Prediction& prediction) {
  return (run.what_if->step_s - prediction.step_s) * static_cast<double>(run.iterations.count);
}

const Prediction* first_prediction(const RunAnalysis& run) {
  if (!run.what_if || is_starved(run)) return nullptr;
  const Prediction *best = nullptr, *relief = nullptr, *harmless = nullptr;
  std::string slow;  // the rank or host that holds the others up, as an argument of --relieve
  const Slowest slowest = slowest_of(run);
  if (slowest.host != nullptr) slow = run.hosts[slowest.host->rank];
  if (slowest.rank != nullptr) slow = std::to_string(run.per_rank[slowest.rank->rank].rank);
  for (const Prediction& of : run.what_if->predictions) {
    if (of.bound || of.per_image != of.ratio) continue;  // other work
    const bool relieves_slow = !slow.empty() && of.options == "--relieve " + slow;
    // It may gain nothing. That the others wait for the slow one is tested in runs that are too short for intervals,
    // too.
    const bool shown = of.ci95 ? of.ci95->high < run.what_if->step_s : relieves_slow && of.ratio < 1;
    if (!shown || changes_parts::is_about_faster_work(of)) continue;
    // Where chance may have made a rank slow, nobody should look for its cause first.
    if (slow.empty() && changes_parts::is_about_slow_ranks(of)) continue;
    const auto better_than = [&](const Prediction* other) { return other == nullptr || of.ratio < other->ratio; };
    if (better_than(best)) best = &of;
    if (better_than(harmless) && changes_parts::keeps_results(of)) harmless = &of;
    if (relieves_slow) relief = &of;
  }
  for (const Prediction* preferred : {relief, harmless}) {
    if (preferred != nullptr && 1 - preferred->ratio >= 0.5 * (1 - best->ratio)) return preferred;
  }
  // Larger collectives keep the results as well, but no prediction says what they save.
  const bool has_small = run.small_collectives && best != nullptr;
  return has_small && run.small_collectives->most_lost() >= 0.5 * (1 - best->ratio) ? nullptr : best;
}

WhatIf first_change_first(const RunAnalysis& run) {
  WhatIf what_if = *run.what_if;
  if (const Prediction* first = first_prediction(run)) {
    const auto at = what_if.predictions.begin() + (first - run.what_if->predictions.data());
    std::rotate(what_if.predictions.begin(), at, at + 1);
    what_if.notes.insert(what_if.notes.begin(),
                         "The first row is the change to make first. The others are ranked by the time per image.");
  } else if (!what_if.predictions.empty() && is_starved(run)) {
    what_if.notes.insert(what_if.notes.begin(),
                         "No row is advice: the run lacked CPUs, and its costs are those of threads that had none.");
  } else if (!what_if.predictions.empty()) {
    what_if.notes.insert(
        what_if.notes.begin(),
        run.small_collectives
            ? "No row is advice: first the collectives should be larger, and no interval says what that saves."
            : "No row is advice: no interval shows that a step becomes shorter. They are ranked by "
              "the time per image.");
  }
  return what_if;
}

namespace changes_parts {

const Prediction* best_of(const RunAnalysis& run, bool (*chosen)(const Prediction&)) {
  const Prediction* best = nullptr;
  if (!run.what_if) return best;
  for (const Prediction& of : run.what_if->predictions) {
    if (of.bound || of.ratio >= 1 || !chosen(of)) continue;
    if (best == nullptr || of.ratio < best->ratio) best = &of;
  }
  return best;
}

}  // namespace changes_parts

const Prediction* best_relief(const RunAnalysis& run) {
  return changes_parts::best_of(run, changes_parts::is_about_slow_ranks);
}

const Prediction* best_uncertain(const RunAnalysis& run) {
  return changes_parts::best_of(run, [](const Prediction& of) {
    return of.per_image == of.ratio && !changes_parts::is_about_slow_ranks(of) &&
           !changes_parts::is_about_faster_work(of);
  });
}

const Prediction* best_faster_work(const RunAnalysis& run) {
  return changes_parts::best_of(run, changes_parts::is_about_faster_work);
}

std::vector<Table> change_tables(const Report& report) {
  std::vector<Table> tables;
  if (const LostTime* lost = headline_lost_time(report)) tables.push_back(changes_parts::causes_table(report, *lost));
  if (const auto focus = focus_of(report); focus && report.runs[*focus].what_if) {
    tables.push_back(prediction_table(first_change_first(report.runs[*focus])));
    if (report.runs.size() > 1) tables.back().title += fmt::format(" of {}", report.runs[*focus].name);
  }
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

}  // namespace paceline::analysis
