// SPDX-License-Identifier: Apache-2.0
// The headline of a report: the one sentence to remember.
#include <algorithm>

#include "analysis/report/sentences.h"
#include "analysis/report/values.h"
#include "analysis/text/lists.h"

namespace paceline::analysis {
namespace headline_parts {

std::string differences_end(const std::vector<Difference>& differences) {
  std::vector<std::string> columns;
  for (const auto& difference : differences) columns.push_back(difference.column);
  return columns.empty() ? "." : fmt::format(", between runs that differ in {}.", list_text(columns));
}

// Claims "faster" or "slower" only where the interval excludes equality.
std::string speed_up_text(const Report& report, const ScalingPoint& point) {
  const char* const lacked = baseline_lacked_cpus(report, point) ? ", which lacked CPUs" : "";
  const std::string speed_up = fixed(*point.speedup, 2);
  switch (point.verdict) {
    case Verdict::faster:
      return fmt::format("{} ranks train {} times as fast as one{}: an efficiency of {}", point.ranks, speed_up, lacked,
                         percent(*point.efficiency));
    case Verdict::slower:
      return fmt::format("{} ranks are slower than one{}: {} times its speed", point.ranks, lacked, speed_up);
    case Verdict::undecided:
      return fmt::format(
          "{} ranks are shown to be neither faster nor slower than one{}: {} times its speed, 95 %: {}–{}", point.ranks,
          lacked, speed_up, fixed(point.speedup_ci95->low, 2), fixed(point.speedup_ci95->high, 2));
    case Verdict::unknown:
      break;
  }
  return fmt::format("S({}) = {} in the runs measured: {} where 1 rank{} took {}, an efficiency of {}", point.ranks,
                     speed_up, seconds(point.seconds), *lacked == 0 ? "" : " without enough CPUs",
                     seconds(report.scaling.points[*point.baseline].seconds), percent(*point.efficiency));
}

std::string scaling_text(const Report& report) {
  const Scaling& scaling = report.scaling;
  if (const ScalingPoint* best = headline_point(scaling)) {
    return speed_up_text(report, *best) + differences_end(best->differences);
  }
  const ScalingPoint* weak = nullptr;
  for (const auto& point : scaling.points) {
    if (point.scaled_speedup && (weak == nullptr || point.ranks >= weak->ranks)) weak = &point;
  }
  if (weak != nullptr) {
    return fmt::format(
        "Weak scaling: {0} ranks train {0} times the images of one in {1} times its time, a weak efficiency of {2}{3}",
        weak->ranks, fixed(1 / *weak->weak_efficiency, 2), percent(*weak->weak_efficiency),
        differences_end(weak->differences));
  }
  return scaling.comparisons.empty() ? "" : comparison_text(scaling, scaling.comparisons.front());
}

std::string one_run_text(const RunAnalysis& run) {
  const std::string ran = fmt::format("{} ran {}", ranks_text(run), duration(run.span_ns));
  if (run.refused()) return ran + "; where the time went is not known, because events were lost.";
  if (run.breakdown) return breakdown_sentence(run);
  return ran + "; no iterations were seen.";
}

// "ring-4 100.2 images/s at an accuracy of 93.0 %"
std::string point_text(const Report& report, const ScalingPoint& point) {
  const RunAnalysis* run = report.trace_of(point.runs.front());
  return fmt::format("{} {}{}",
                     run != nullptr ? run->name : plural(static_cast<std::size_t>(point.ranks), "rank", "ranks"),
                     point.images > 0 ? images_per_second(point.throughput) : seconds(point.seconds),
                     point.accuracy ? " at an accuracy of " + percent(*point.accuracy) : "");
}

std::string runs_text(const Report& report) {
  constexpr std::size_t most_named = 4;
  const auto& points = report.scaling.points;
  if (points.empty()) {
    return fmt::format("None of the {} can be compared: they failed or did not end, or events were lost.",
                       plural(report.runs.size(), "run", "runs"));
  }
  std::vector<std::size_t> all;
  std::vector<std::string> named;
  for (std::size_t p = 0; p < points.size(); ++p) {
    all.push_back(p);
    if (p < most_named) named.push_back(point_text(report, points[p]));
  }
  if (points.size() > most_named) named.push_back(fmt::format("{} more", points.size() - most_named));
  const std::string ranks = rank_counts_text(report.scaling, all);
  const auto left_out = std::ranges::count_if(report.runs, [](const auto& run) { return !run.can_be_compared(); });
  return fmt::format("No speed-up from runs on {} {}{}: {}.", ranks, ranks == "1" ? "rank" : "ranks",
                     left_out == 0 ? "" : fmt::format(" ({} left out)", left_out), list_text(named));
}

}  // namespace headline_parts

const ScalingPoint* headline_point(const Scaling& scaling) {
  const ScalingPoint* best = nullptr;
  for (const auto& point : scaling.points) {
    if (point.ranks == 1 || !point.speedup) continue;
    const bool closer = best != nullptr && point.differences.size() < best->differences.size();
    const bool as_close = best != nullptr && point.differences.size() == best->differences.size();
    if (best == nullptr || closer || (as_close && point.ranks >= best->ranks)) best = &point;
  }
  return best;
}

std::string headline_of(const Report& report) {
  using namespace headline_parts;
  if (auto headline = scaling_text(report); !headline.empty()) return headline;
  return report.runs.size() == 1 && report.scaling_runs.size() <= 1 ? one_run_text(report.runs[0]) : runs_text(report);
}

}  // namespace paceline::analysis
