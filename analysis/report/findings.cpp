#include "analysis/report/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/report/shares.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace {

std::string breakdown_sentence(const RunReport& run) {
  const Breakdown& b = *run.breakdown;
  std::string text =
      fmt::format("Of {} of wall time{}, {} ({}) shrink when ranks are added, {} ({}) stay as they are",
                  duration(b.wall_ns), run.ranks > 1 ? " (mean over ranks)" : "", duration(b.parallel_ns),
                  percent(share(b.parallel_ns, b.wall_ns)), duration(b.serial_ns), percent(b.serial_share));
  if (run.ranks > 1 && run.communication_observed) {
    text += fmt::format(", and {} ({}) are spent on communication and on waiting for other ranks",
                        duration(b.overhead_ns), percent(share(b.overhead_ns, b.wall_ns)));
  }
  return text;
}

// Names a rank only as far as the test of its lateness carries.
std::string slow_rank_text(const RunReport& run) {
  const LatenessTest& test = run.lateness;
  if (!test.judged) {
    return test.iterations == 0
               ? " Whether a rank is slow was not judged: no collective of all ranks lies in an iteration that all "
                 "ranks "
                 "finished."
               : fmt::format(
                     " Whether a rank is slow was not judged: after warm-up there are {} with collectives of all "
                     "ranks, too few for their autocorrelation time of {}.",
                     plural(test.iterations, "iteration", "iterations"), significant(test.autocorrelation_time, 2));
  }
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(test.late.size(), 4); ++i) {
    const LateRank& late = test.late[i];
    const RankReport& rank = run.per_rank[late.rank];
    text += fmt::format(
        " Rank {} on {} came {} later to the collectives of an iteration than {}, on average over {}: "
        "that costs {} of a step, and chance makes a rank of a balanced run that late in {} of 1,000 "
        "runs{}.",
        rank.rank, rank.host, seconds(1e-9 * late.behind_ns),
        run.per_rank.size() == 2 ? "the other rank" : "the median of the other ranks",
        plural(test.iterations, "iteration", "iterations"), percent(late.share_of_step),
        late.p < 0.001 ? "fewer than 1" : "fewer than " + fixed(std::ceil(1000 * late.p), 0),
        i == 0 ? fmt::format(" (ranks permuted in blocks of {})", plural(test.block, "iteration", "iterations")) : "");
  }
  if (test.late.size() > 4) text += fmt::format(" {} further ranks are late, too.", test.late.size() - 4);
  if (!test.late.empty()) text += " Look at what it does before its collectives.";
  return text;
}

void add_wait_finding(const RunReport& run, std::vector<Finding>& out) {
  if (!any_timed(run.collectives)) return;
  OfWall waited;
  for (const auto& rank : run.per_rank) {
    waited.ns += rank.waited_ns;
    waited.wall_ns += rank.wall_ns;
  }
  std::string text =
      fmt::format("In its collectives a rank waited {} for the last one ({} of its wall time, on average).",
                  duration(waited.ns / static_cast<std::int64_t>(run.per_rank.size())), percent(waited.share()));
  text += slow_rank_text(run);
  const bool slow = !run.lateness.late.empty() && run.lateness.late.front().share_of_step > 0.05;
  out.push_back({slow ? Severity::warning : Severity::info, std::move(text)});
}

// The limit has an interval, too, and none where s may be nearly 0.
std::string serial_share_text(const Breakdown& breakdown) {
  const double s = breakdown.serial_share;
  const auto& ci95 = breakdown.serial_share_ci95;
  if (s <= 0) return "";
  std::string text = fmt::format(" The serial share is s = {}", with_interval(fixed(s, 4), ci95, 4));
  if (s < least_serial_share) return text + ".";
  text +=
      fmt::format(": by Amdahl's law alone no number of ranks is more than {} times as fast", significant(1 / s, 3));
  if (ci95) {
    text += ci95->low < least_serial_share
                ? fmt::format(" (95 %: at least {})", significant(1 / ci95->high, 3))
                : fmt::format(" (95 %: {}–{})", significant(1 / ci95->high, 3), significant(1 / ci95->low, 3));
  }
  return text + ".";
}

void add_accuracy_finding(const RunReport& run, std::vector<Finding>& out) {
  if (!run.accuracy) return;
  std::string text = fmt::format("The test accuracy reached is {}", percent(*run.accuracy));
  if (run.seconds_to_accuracy) {
    text += fmt::format("; {:g} % were reached {} after the start.", 100 * run.target_accuracy,
                        seconds(*run.seconds_to_accuracy));
    out.push_back({Severity::info, std::move(text)});
  } else {
    text += fmt::format("; {:g} % were not reached.", 100 * run.target_accuracy);
    out.push_back({Severity::info, std::move(text)});
  }
}

}  // namespace

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

void add_run_findings(const RunReport& run, std::vector<Finding>& out) {
  if (run.breakdown) {
    std::string text = breakdown_sentence(run) + ".";
    if (run.ranks == 1 && run.ended) text += serial_share_text(*run.breakdown);
    out.push_back({Severity::info, std::move(text)});
  }
  if (run.communication_share_of_step) {
    const double s = *run.communication_share_of_step;
    std::string text = fmt::format("Allreduce and other communication take {} of a step", percent(s));
    text += s >= least_serial_share && run.can_be_compared()
                ? fmt::format(
                      ". Read as Amdahl's serial share, as lectures do, it would hold this job below {} times the "
                      "speed of one rank; it holds only while that share stays as N grows.",
                      significant(1 / s, 3))
                : ".";
    out.push_back({s > 0.25 ? Severity::warning : Severity::info, std::move(text)});
  }
  add_wait_finding(run, out);
  const OfWall preprocess = phase_of_wall(run, Phase::preprocess);
  if (preprocess.share() > 0.05) {
    out.push_back(
        {Severity::warning, fmt::format("{} of the time the training waits for input: more loader threads, or "
                                        "prefetching further ahead, would hide it.",
                                        percent(preprocess.share()))});
  }
  const OfWall startup = phase_of_wall(run, Phase::startup);
  if (startup.share() > 0.1) {
    out.push_back(
        {Severity::info,
         fmt::format("Start-up takes {} of the wall time ({}); it weighs less in longer runs.",
                     percent(startup.share()), duration(startup.ns / static_cast<std::int64_t>(run.per_rank.size())))});
  }
  out.insert(out.end(), run.machine_findings.begin(), run.machine_findings.end());
  add_accuracy_finding(run, out);
  add_quality_findings(run, out);
}

namespace {

// Says "slower" only where the interval leaves nothing else, and neither where it holds 1.
std::string ranks_ran(const RunReport& run) {
  return fmt::format("{} ran {}", plural(static_cast<std::size_t>(run.ranks), "rank", "ranks"),
                     seconds(1e-9 * static_cast<double>(run.span_ns)));
}

std::string one_run_headline(const RunReport& run) {
  if (run.refused()) {
    return fmt::format("{}; where the time went is not known, because events were lost.", ranks_ran(run));
  }
  if (run.breakdown) return breakdown_sentence(run) + ".";
  return fmt::format("{}; no iterations were seen, so there is no breakdown and no throughput.", ranks_ran(run));
}

// "ring-4 100.2 images/s"
std::string point_headline(const Report& report, const ScalingPoint& point) {
  const std::size_t first = point.runs.front();
  const auto run = report.run_of_scaling_run[first];
  const std::string name =
      run ? report.runs[*run].name : plural(static_cast<std::size_t>(point.ranks), "rank", "ranks");
  return fmt::format("{} {}", name, point.images > 0 ? images_per_second(point.throughput) : seconds(point.seconds));
}

std::string runs_headline(const Report& report) {
  constexpr std::size_t most_named = 4;
  const auto& points = report.scaling.points;
  if (points.empty()) {
    return fmt::format("None of the {} can be compared: they did not end, or events were lost.",
                       plural(report.runs.size(), "run", "runs"));
  }
  std::set<int> ranks;
  for (const auto& point : points) ranks.insert(point.ranks);
  std::vector<std::string> numbers, named;
  for (const int n : ranks) numbers.push_back(std::to_string(n));
  for (std::size_t p = 0; p < std::min(points.size(), most_named); ++p) {
    named.push_back(point_headline(report, points[p]));
  }
  if (points.size() > most_named) named.push_back(fmt::format("{} more", points.size() - most_named));
  const std::size_t left_out = static_cast<std::size_t>(
      std::ranges::count_if(report.runs, [](const RunReport& run) { return !run.can_be_compared(); }));
  return fmt::format("No speed-up from runs on {} {}{}: {}.", list_text(numbers),
                     ranks.size() == 1 && *ranks.begin() == 1 ? "rank" : "ranks",
                     left_out == 0 ? "" : fmt::format(" ({} left out)", left_out), list_text(named));
}

std::string headline_of(const Report& report) {
  if (auto headline = scaling_headline(report); !headline.empty()) return headline;
  return report.runs.size() == 1 && report.scaling_runs.size() <= 1 ? one_run_headline(report.runs[0])
                                                                    : runs_headline(report);
}

}  // namespace

void write_findings(Report& report) {
  auto& findings = report.findings;
  findings.clear();
  report.headline = headline_of(report);
  add_scaling_findings(report, findings);
  for (const auto& run : report.runs) {
    std::vector<Finding> of_run;
    add_run_findings(run, of_run);
    for (auto& finding : of_run) {
      if (report.runs.size() > 1) finding.run = static_cast<std::size_t>(&run - report.runs.data());
      findings.push_back(std::move(finding));
    }
  }
  // Problems first; what else was said first stays first.
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return (a.severity == Severity::problem) > (b.severity == Severity::problem);
  });
}

}  // namespace paceline::analysis
