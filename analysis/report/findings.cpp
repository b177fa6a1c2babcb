#include "analysis/report/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/report/numbers.h"

namespace paceline::analysis {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// The sum of one phase over ranks, and of their wall times.
struct OfWall {
  std::int64_t ns = 0, wall_ns = 0;
  double share() const { return analysis::share(ns, wall_ns); }
};

OfWall phase_of_wall(const RunReport& run, Phase phase) {
  OfWall out;
  for (const auto& rank : run.per_rank) {
    out.ns += rank.phase_ns[static_cast<std::size_t>(phase)];
    out.wall_ns += rank.wall_ns;
  }
  return out;
}

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

void add_wait_finding(const RunReport& run, std::vector<Finding>& out) {
  if (!any_timed(run.collectives)) return;
  std::int64_t waited = 0, wall = 0;
  std::uint64_t matched = 0;
  for (const auto& rank : run.per_rank) {
    waited += rank.waited_ns;
    wall += rank.wall_ns;
    matched += rank.last_count;
  }
  const auto worst = std::max_element(run.per_rank.begin(), run.per_rank.end(),
                                      [](const auto& a, const auto& b) { return a.caused_ns < b.caused_ns; });
  const auto ranks = static_cast<double>(run.per_rank.size());
  std::string text = fmt::format(
      "In its collectives a rank waited {} for the last one ({} of its wall time, on average).",
      duration(static_cast<std::int64_t>(static_cast<double>(waited) / ranks)), percent(share(waited, wall)));
  const double last_share = share(static_cast<std::int64_t>(worst->last_count), static_cast<std::int64_t>(matched));
  // A rank that is last by chance is last in 1/n of them; one that is last more often, and is waited for much more, is
  // slow. Who is last where one collective follows another, without work between, is chance in any case.
  const bool slow = ranks > 1 && last_share > 1.2 / ranks && share(worst->caused_ns, waited) > 1.5 / ranks;
  if (slow) {
    text += fmt::format(
        " Rank {} on {} was the last in {} of {} collectives and caused {} of that waiting: look at what it "
        "does before them.",
        worst->rank, worst->host, count(static_cast<double>(worst->last_count)), count(static_cast<double>(matched)),
        percent(share(worst->caused_ns, waited)));
  }
  out.push_back({slow && share(waited, wall) > 0.05 ? Severity::warning : Severity::info, std::move(text)});
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

void add_coverage_finding(const RunReport& run, std::vector<Finding>& out) {
  std::int64_t recorded = 0, span = 0;
  std::vector<std::string> reasons;
  for (const auto& rank : run.per_rank) {
    recorded += rank.wall_ns;
    span += rank.span_ns;
    for (const std::string& reason : rank.gaps) {
      if (std::ranges::find(reasons, reason) == reasons.end()) reasons.push_back(reason);
    }
  }
  if (reasons.empty()) return;
  const auto ranks = static_cast<std::int64_t>(run.per_rank.size());
  out.push_back({Severity::info,
                 fmt::format("Of {} that a rank ran, on average, {} ({}) were recorded: figures cover that part. The "
                             "rest: {}.",
                             duration(span / ranks), duration(recorded / ranks), percent(share(recorded, span)),
                             list_text(reasons))});
}

void add_quality_findings(const RunReport& run, std::vector<Finding>& out) {
  for (const std::string& hang : run.hangs) out.push_back({Severity::problem, hang});
  if (!run.sudden_ends.empty()) out.push_back({Severity::problem, run.sudden_ends});
  add_coverage_finding(run, out);
  for (const auto& damage : run.damage) {
    out.push_back({Severity::problem, fmt::format("The trace is cut off ({}): figures cover what was read, and the run "
                                                  "is left out of the scaling section.",
                                                  damage)});
  }
  if (static_cast<int>(run.per_rank.size()) < run.ranks) {
    out.push_back({Severity::problem,
                   fmt::format("Only {} of {} ranks have a trace here: collect the other ranks' files into the same "
                               "directory.",
                               run.per_rank.size(), run.ranks)});
  }
  if (run.dropped > 0) {
    out.push_back(
        {Severity::warning, fmt::format("{} were lost while recording: times of what they belong to are too short.",
                                        plural(run.dropped, "event", "events"))});
  }
  if (!run.communication_observed) {
    out.push_back(
        {Severity::warning,
         "Communication was not observed: no source saw any, so it is part of other phases here. The "
         "recorder sees MPI and NVTX ranges; put a range named \"allreduce\" around other libraries' calls."});
  }
  if (run.unmatched_calls > 0 && run.ranks > 1) {
    out.push_back(
        {Severity::warning, fmt::format("{} found no partner on other ranks and {} left out of waits and transfers.",
                                        plural(run.unmatched_calls, "collective call", "collective calls"),
                                        run.unmatched_calls == 1 ? "is" : "are")});
  }
  std::uint64_t enqueued = 0;
  for (const auto& row : run.collectives) {
    if (row.operation.starts_with("nccl")) enqueued += row.count - row.timed;
  }
  if (enqueued > 0) {
    out.push_back(
        {Severity::warning,
         fmt::format("When {} ran is not known, only when they were enqueued, so their waits and transfers are "
                     "not either: record CUDA as well, or with --nccl-kernel-channels.",
                     plural(enqueued, "collective of NCCL", "collectives of NCCL"))});
  }
  if (run.iterations.count == 0) {
    out.push_back({Severity::warning,
                   "No iterations were seen: put an NVTX range named \"iteration\" around a "
                   "training step to have steps, throughput and what would shrink with ranks."});
  } else if (!run.images) {
    out.push_back({Severity::warning,
                   "The number of images is not known: record with `--set images_per_iteration=N` "
                   "to have images/s and speed-ups."});
  }
  const OfWall other = phase_of_wall(run, Phase::other);
  if (run.iterations.count > 0 && other.share() > 0.02) {
    out.push_back(
        {Severity::warning,
         fmt::format("{} of the time ({}) belong to no phase: NVTX ranges around that code would name them.",
                     percent(other.share()), duration(other.ns / static_cast<std::int64_t>(run.per_rank.size())))});
  }
}

}  // namespace

std::string list_text(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? " and " : ", ";
    text += items[i];
  }
  return text;
}

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
    if (run.ranks == 1 && run.breakdown->serial_share > 0) {
      text += fmt::format(
          " The serial share is s = {}{}: by Amdahl's law alone no number of ranks is more than {} times as fast.",
          fixed(run.breakdown->serial_share, 4),
          run.breakdown->serial_share_ci95
              ? fmt::format(" (95 %: {}–{})", fixed(run.breakdown->serial_share_ci95->low, 4),
                            fixed(run.breakdown->serial_share_ci95->high, 4))
              : "",
          significant(1 / run.breakdown->serial_share, 3));
    }
    out.push_back({Severity::info, std::move(text)});
  }
  if (run.communication_share_of_step) {
    const double s = *run.communication_share_of_step;
    std::string text = fmt::format("Allreduce and other communication take {} of a step", percent(s));
    text += s > 0 ? fmt::format(
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

void write_findings(Report& report) {
  auto& findings = report.findings;
  findings.clear();
  report.headline.clear();
  if (const ScalingPoint* best = headline_point(report.scaling)) {
    report.headline =
        *best->speedup < 1
            ? fmt::format("{} ranks are slower than one: {} times its speed", best->ranks, fixed(*best->speedup, 2))
            : fmt::format("{} ranks train {} times as fast as one: an efficiency of {}", best->ranks,
                          fixed(*best->speedup, 2), percent(*best->efficiency));
    std::vector<std::string> columns;
    for (const auto& difference : best->differences) columns.push_back(difference.column);
    report.headline += columns.empty() ? "." : fmt::format(", between runs that differ in {}.", list_text(columns));
  } else if (report.runs.size() == 1 && report.runs[0].breakdown) {
    report.headline = breakdown_sentence(report.runs[0]) + ".";
  } else {
    report.headline =
        fmt::format("{} on {}.", plural(report.scaling_runs.size(), "run", "runs"),
                    report.scaling.rank_counts == 1
                        ? plural(static_cast<std::size_t>(report.scaling.points.front().ranks), "rank", "ranks")
                        : fmt::format("{} different numbers of ranks", report.scaling.rank_counts));
  }
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
