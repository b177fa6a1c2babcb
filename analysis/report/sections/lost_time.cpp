// SPDX-License-Identifier: Apache-2.0
// What keeps a speed-up from N: the seconds between T(N) and T(1)/N by cause, over all repeats.
#include <algorithm>

#include "analysis/report/sections.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace lost_time_section {

constexpr double much_slower = 0.1;  // of the time that a perfect division would leave

double in_seconds(std::int64_t ns) { return 1e-9 * static_cast<double>(ns); }

// The runs of a point that have a breakdown with communication.
std::vector<std::size_t> broken_down(const Report& report, const ScalingPoint& point) {
  std::vector<std::size_t> runs;
  for (const std::size_t r : point.runs) {
    const RunAnalysis* run = report.trace_of(r);
    if (run != nullptr && run->breakdown && run->communication_observed) runs.push_back(*report.run_of_scaling_run[r]);
  }
  return runs;
}

double waited_s(const RunAnalysis& run) {
  double sum = 0;
  for (const RankWaits& rank : run.waits) sum += in_seconds(rank.waited_ns) / static_cast<double>(run.waits.size());
  return std::min(sum, in_seconds(run.breakdown->overhead_ns));
}

std::optional<LostTime> lost_time(const Report& report, const ScalingPoint& one, const ScalingPoint& many) {
  LostTime lost;
  lost.one = broken_down(report, one);
  lost.many = broken_down(report, many);
  if (lost.one.empty() || lost.many.empty()) return std::nullopt;
  lost.ranks = many.ranks;
  const double n = many.ranks;
  const auto mean = [&](const std::vector<std::size_t>& runs, auto&& figure) {
    double sum = 0;
    for (const std::size_t r : runs) sum += figure(report.runs[r]);
    return sum / static_cast<double>(runs.size());
  };
  const auto part = [](std::int64_t Breakdown::*ns) {
    return [ns](const RunAnalysis& run) { return in_seconds((*run.breakdown).*ns); };
  };
  const auto excess = [&](std::int64_t Breakdown::*ns) {
    return mean(lost.many, part(ns)) - mean(lost.one, part(ns)) / n;
  };
  const auto wall = part(&Breakdown::wall_ns);
  lost.ideal_s = mean(lost.one, wall) / n;
  lost.actual_s = mean(lost.many, wall);
  lost.serial_s = excess(&Breakdown::serial_ns);
  lost.overhead_s = excess(&Breakdown::overhead_ns);
  lost.slowdown_s = excess(&Breakdown::parallel_ns);
  lost.waiting_s = std::min(mean(lost.many, waited_s), lost.overhead_s);
  const auto wall_of = [&](std::size_t r) { return wall(report.runs[r]); };
  const auto [one_low, one_high] = std::ranges::minmax(lost.one, {}, wall_of);
  const auto [many_low, many_high] = std::ranges::minmax(lost.many, {}, wall_of);
  lost.ideal_low_s = wall_of(one_low) / n;
  lost.ideal_high_s = wall_of(one_high) / n;
  lost.actual_low_s = wall_of(many_low);
  lost.actual_high_s = wall_of(many_high);
  return lost;
}

// POP's computation scaling: the parallel work of the 1-rank run ÷ that of all N ranks together. nullopt without any.
std::optional<double> computation_scaling(const Report& report, const LostTime& lost) {
  const auto mean = [&](const std::vector<std::size_t>& runs) {
    double sum = 0;
    for (const std::size_t r : runs) sum += in_seconds(report.runs[r].breakdown->parallel_ns);
    return sum / static_cast<double>(runs.size());
  };
  const double many = mean(lost.many);
  return many > 0 ? std::optional(mean(lost.one) / (lost.ranks * many)) : std::nullopt;
}

// "1.61 s", or "1.61 s (mean of 4 runs, 1.58 s to 1.66 s)"
std::string mean_text(double mean, std::size_t runs, double low, double high) {
  if (runs < 2) return seconds(mean);
  return fmt::format("{} (mean of {} runs, {} to {})", seconds(mean), runs, seconds(low), seconds(high));
}

// Waiting for a CPU explains slower work before memory or clocks do: a thread that waits computes nothing.
std::string slowdown_cause(const Report& report, const LostTime& lost) {
  const auto many = mean_cpu_waiting(report, lost.many), one = mean_cpu_waiting(report, lost.one);
  if (many && *many >= much_cpu_waiting && *many > one.value_or(0) + much_cpu_waiting / 2) {
    return fmt::format(
        " The main threads waited {} of the time for a CPU{}: more threads are ready to run than there are CPUs. Give "
        "each rank fewer threads or CPUs of its own.",
        percent(*many), one ? fmt::format(", against {} on 1 rank", percent(*one)) : "");
  }
  return fmt::format(
      " {} Ranks on one machine share its memory bandwidth, caches and clock frequency. Compare with fewer threads per "
      "rank, or with one rank per machine.",
      many ? fmt::format("The main threads waited only {} of the time for a CPU.", percent(*many))
           : "Waits for a CPU were not counted (`paceline record` counts them where the kernel supports it).");
}

void findings(const Report& report, SentenceList& out) {
  for (const auto& lost : report.lost_time) {
    const bool in_headline = &lost == headline_lost_time(report);
    out.say("lost time", Severity::info, lost_time_text(report, lost),
            in_headline ? std::optional(lost.actual_s - lost.ideal_s) : std::nullopt);
  }
}

void tables(const Report& report, std::vector<Table>& out) {
  Table table{.id = "lost-time",
              .title = "What keeps the speed-up from N",
              .columns = {"ranks", "T(1)/N", "serial work", "communication", "of it waiting", "slower parallel work",
                          "T(N)", "computation scaling"},
              .text_columns = 0,
              .note =
                  "T(1)/N + serial + communication + slower parallel work = T(N), in wall time averaged over ranks and "
                  "repeats. A figure below 0 is time that more ranks saved. Computation scaling (POP): the parallel "
                  "work of the "
                  "1-rank run ÷ that of all N ranks; below 100 %, the ranks work more slowly than one rank alone."};
  for (const auto& lost : report.lost_time) {
    table.rows.push_back({std::to_string(lost.ranks), seconds(lost.ideal_s), seconds(lost.serial_s),
                          seconds(lost.overhead_s), seconds(lost.waiting_s), seconds(lost.slowdown_s),
                          seconds(lost.actual_s),
                          or_none(computation_scaling(report, lost), [](double share) { return percent(share); })});
  }
  out.push_back(std::move(table));
}

void figures(const Report& report, Json& out) {
  for (const auto& lost : report.lost_time) {
    out["lost_time"].push_back({{"ranks", lost.ranks},
                                {"runs", lost.many.size()},
                                {"baseline_runs", lost.one.size()},
                                {"ideal_s", lost.ideal_s},
                                {"actual_s", lost.actual_s},
                                {"serial_s", lost.serial_s},
                                {"overhead_s", lost.overhead_s},
                                {"waiting_s", lost.waiting_s},
                                {"slowdown_s", lost.slowdown_s}});
    set(out["lost_time"].back(), "computation_scaling", computation_scaling(report, lost));
  }
}

void charts(const Report& report, std::vector<Chart>& out) {
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& lost : report.lost_time) {
    rows.push_back({{"label", plural(static_cast<std::size_t>(lost.ranks), "rank", "ranks")},
                    {"values", {lost.serial_s, lost.overhead_s - lost.waiting_s, lost.waiting_s, lost.slowdown_s}}});
  }
  if (rows.empty()) return;
  out.push_back({.title = "Seconds beyond T(1)/N, by cause", .kind = "lost", .data = {{"rows", rows}}});
}

}  // namespace lost_time_section

ScalingSection sections::lost_time() {
  using namespace lost_time_section;
  return {findings, tables, figures, charts};
}

std::vector<LostTime> lost_times(const Report& report) {
  std::vector<LostTime> all;
  const auto& points = report.scaling.points;
  for (const auto& point : points) {
    if (!point.baseline || point.ranks == 1) continue;
    auto lost = lost_time_section::lost_time(report, points[*point.baseline], point);
    if (!lost) continue;
    lost->point = static_cast<std::size_t>(&point - points.data());
    all.push_back(std::move(*lost));
  }
  return all;
}

std::string lost_time_text(const Report& report, const LostTime& lost) {
  using namespace lost_time_section;
  std::string text = fmt::format(
      "In wall time averaged over the ranks, {} ranks took {}, and {} of the 1-rank {} is {}. Of the difference of "
      "{}, ",
      lost.ranks, mean_text(lost.actual_s, lost.many.size(), lost.actual_low_s, lost.actual_high_s),
      lost.ranks == 2 ? "half" : fmt::format("1/{}", lost.ranks), lost.one.size() > 1 ? "time" : "run",
      mean_text(lost.ideal_s, lost.one.size(), lost.ideal_low_s, lost.ideal_high_s),
      seconds(lost.actual_s - lost.ideal_s));
  text += lost.serial_s >= 0 ? fmt::format("serial work that does not shrink takes {}", seconds(lost.serial_s))
                             : fmt::format("serial work gives back {} (it shrank by more than 1/{})",
                                           seconds(-lost.serial_s), lost.ranks);
  text += fmt::format(", communication takes {}", seconds(lost.overhead_s));
  if (lost.overhead_s > 0) text += fmt::format(" ({} of it waiting for the last rank)", seconds(lost.waiting_s));
  text +=
      lost.slowdown_s >= 0
          ? fmt::format(", and {} are parallel work that took longer for the same images than on 1 rank.",
                        seconds(lost.slowdown_s))
          : fmt::format(". Parallel work took {} less for the same images than on 1 rank.", seconds(-lost.slowdown_s));
  if (lost.slowdown_s > much_slower * lost.ideal_s) text += slowdown_cause(report, lost);
  return text;
}

}  // namespace paceline::analysis
