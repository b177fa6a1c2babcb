// SPDX-License-Identifier: Apache-2.0
// The verdict of a report: how well the job runs or scales, what limits it, which rank, and what to change first.
#include <algorithm>
#include <map>

#include "analysis/report/cause_text.h"
#include "analysis/report/changes.h"
#include "analysis/report/lateness_judgement.h"
#include "analysis/report/predictions.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"
#include "analysis/text/lists.h"

namespace paceline::analysis {
namespace verdict_parts {

constexpr double little_lost = 0.02;  // of the time that N ranks took
constexpr const char* from_tables =
    "The table has total times only: record the runs (`paceline record`) to learn what limits them and what to change.";

std::string without_full_stop(std::string text) {
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string rank_name(const RankSummary& rank) { return fmt::format("rank {}{}", rank.rank, on_host(rank)); }

// "10.2 ms late in each step", or "10.2 ms late on average and is late in 150 of 450 steps".
std::string lateness_text(double behind_ns, std::size_t affected, std::size_t iterations) {
  constexpr double nearly_each = 0.9;
  std::string text = seconds(1e-9 * behind_ns) + " late";
  if (static_cast<double>(affected) >= nearly_each * static_cast<double>(iterations)) return text + " in each step";
  text += " on average";
  if (affected > 0) text += fmt::format(" and is late in {} of {} steps", affected, iterations);
  return text;
}

// "rank 37 on node05 holds the others up: it arrives 10.2 ms late in each step". Names only whom the tests name, and of
// these the one that costs most.
std::string rank_text(const RunAnalysis& run) {
  const Slowest slowest = slowest_of(run);
  if (slowest.host) {
    return fmt::format("the host {} holds the others up: its ranks arrive {} late on average",
                       run.hosts[slowest.host->rank], seconds(1e-9 * slowest.host->behind_ns));
  }
  if (slowest.rank) {
    const auto i = static_cast<std::size_t>(slowest.rank - run.lateness.late.data());
    const LatenessCause cause = i < run.lateness_causes.size() ? run.lateness_causes[i] : LatenessCause{};
    std::string text =
        fmt::format("{} holds the others up: it arrives {}", rank_name(run.per_rank[slowest.rank->rank]),
                    lateness_text(slowest.rank->behind_ns, cause.pattern.affected, run.lateness.iterations));
    if (cause.phase) text += fmt::format(", because its {} takes longer", slow_phase_name(*cause.phase));
    if (run.causes) text += lateness_cause_text(run.causes->ranks[slowest.rank->rank]);
    return text;
  }
  if (!run.irregularity.late.empty()) {
    const LateRank& late = run.irregularity.late.front();
    return fmt::format("{} is irregular, not slow: without it a step takes {} less on average",
                       rank_name(run.per_rank[late.rank]), seconds(1e-9 * late.behind_ns));
  }
  if (run.per_rank.size() < 2 || run.lateness.iterations == 0) return "";
  const std::string unknown = why_lateness_is_unknown(run);
  return unknown.empty() ? "no rank is late beyond chance" : unknown;
}

// The copies of all GPUs by their name, "Memcpy HtoD (pinned -> GPU 0)"; the ranks' sums together.
struct Copies {
  std::int64_t ns = 0, largest_ns = 0;
  std::string largest;
};
Copies copies_of(const RunAnalysis& run) {
  std::map<std::string, std::int64_t> by_name;
  Copies copies;
  for (const RankSummary& rank : run.per_rank) {
    for (const KernelStatistics& work : rank.gpu_kernels) {
      if (work.category != "memcpy") continue;
      copies.ns += work.sum_ns;
      by_name[work.name.substr(0, work.name.find(" ("))] += work.sum_ns;
    }
  }
  for (const auto& [name, ns] : by_name) {
    if (ns > copies.largest_ns) copies.largest_ns = ns, copies.largest = name;
  }
  return copies;
}

struct GpuSums {
  std::int64_t span_ns = 0, idle_ns = 0, compute_ns = 0, exposed_ns = 0;
};
GpuSums gpu_sums(const RunAnalysis& run) {
  GpuSums sums;
  for (const RankSummary& rank : run.per_rank) {
    if (!rank.gpu) continue;
    sums.span_ns += rank.gpu->span_ns, sums.idle_ns += rank.gpu->idle_ns, sums.compute_ns += rank.gpu->compute_ns;
    if (rank.overlap) sums.exposed_ns += rank.overlap->exposed_ns();
  }
  return sums;
}

// "the GPUs compute during 80.0 % of their time, idle during 12.0 %, and 5.0 % is communication that no computation
// hides", over all ranks; "" where no rank has a GPU. Copies are named where they take more time than computation.
std::string limit_of_gpus(const RunAnalysis& run) {
  const GpuSums sums = gpu_sums(run);
  if (sums.span_ns == 0) return "";
  std::string text =
      fmt::format("the GPUs compute during {} of their time and idle during {}",
                  percent(share(sums.compute_ns, sums.span_ns)), percent(share(sums.idle_ns, sums.span_ns)));
  if (sums.exposed_ns > 0) {
    text += fmt::format(", and {} is communication that no computation hides",
                        percent(share(sums.exposed_ns, sums.span_ns)));
  }
  if (const Copies copies = copies_of(run); copies.ns > sums.compute_ns) {
    text += fmt::format(", and their copies take {}, {} of it {}", duration(copies.ns), duration(copies.largest_ns),
                        copies.largest);
  }
  return text;
}

// What takes most of one run's wall time beside its parallel work. The headline gives the time of communication itself.
std::string limit_of_run(const RunAnalysis& run, bool behind_headline) {
  if (std::string gpus = limit_of_gpus(run); !gpus.empty()) return gpus;
  if (!run.breakdown) return "";
  const Breakdown& b = *run.breakdown;
  const BreakdownRow* largest = nullptr;
  for (const BreakdownRow& row : b.rows) {
    const bool waits_for_input = row.phase == Phase::preprocess;
    if (row.counts_as == CountsAs::parallel && !waits_for_input) continue;
    if (largest == nullptr || row.ns > largest->ns) largest = &row;
  }
  if (largest == nullptr || share(largest->ns, b.wall_ns) < little_lost) {
    return "nothing beside the parallel work takes much time";
  }
  const bool communicates = largest->phase == Phase::communication;
  if (communicates && behind_headline) return "";
  if (communicates) return "most of the rest is communication and waiting for other ranks";
  return fmt::format("{} takes {} of the wall time",
                     largest->phase == Phase::startup ? "start-up" : phase_name(largest->phase),
                     percent(share(largest->ns, b.wall_ns)));
}

// A sentence about CPUs that the run lacked, with a space behind it; "" where something else cost more.
std::string starved_sentence(const RunAnalysis& run) {
  return is_starved(run) ? capitalised(starved_text(run)) + ". " : "";
}

std::string state_of_run(const Report& report, const RunAnalysis& run) {
  std::string text = without_full_stop(report.headline);
  bool behind_headline = true;
  if (run.efficiencies && run.ranks > 1 && report.scaling.comparisons.empty() && report.scaling.points.size() < 2) {
    text = fmt::format("{} do useful work during {} of a step of {} (median)", ranks_text(run),
                       percent(run.efficiencies->parallel), duration(run.iterations.steady_median_ns));
    behind_headline = false;
  } else if (run.iterations.count > 0 && report.runs.size() == 1) {
    text = fmt::format("{} {} {} for a step (median)", ranks_text(run), run.ranks == 1 ? "takes" : "take",
                       duration(run.iterations.steady_median_ns));
    behind_headline = false;
  }
  const std::string limit = limit_of_run(run, behind_headline), rank = rank_text(run);
  if (is_starved(run)) return starved_sentence(run) + capitalised(rank.empty() ? text : rank) + ".";
  if (!limit.empty()) text += "; " + limit;
  if (!rank.empty()) text += (limit.find(", and ") != std::string::npos ? "; " : ", and ") + rank;
  if (const std::string slow = slow_iterations_text(run); !slow.empty()) text += "; " + slow;
  return text + ".";
}

// As the headline, without a formula.
std::string speed_text(const Report& report, const ScalingPoint& point) {
  if (point.verdict != Verdict::unknown) return without_full_stop(report.headline);
  std::string text =
      fmt::format("In these runs, {} ranks trained {} times as fast as one ({} against {}, an efficiency of {})",
                  point.ranks, fixed(*point.speedup, 2), seconds(point.seconds),
                  seconds(report.scaling.points[*point.baseline].seconds), percent(*point.efficiency));
  if (!point.differences.empty()) text += ", with a change of " + differences_text(point.differences);
  return text;
}

// "; the test accuracy is 91.0 % on 4 ranks and 93.0 % on one", because speed without accuracy says little. "" where it
// is not known.
std::string accuracy_text(const Report& report, const ScalingPoint& point) {
  if (!point.baseline || !point.accuracy) return "";
  const auto& one = report.scaling.points[*point.baseline].accuracy;
  if (!one) return "";
  return fmt::format("; the test accuracy is {} on {} ranks and {} on one", percent(*point.accuracy), point.ranks,
                     percent(*one));
}

std::string state_of_scaling(const Report& report, const LostTime& lost) {
  const RunAnalysis& run = report.runs[lost.many.front()];
  std::string text = starved_sentence(run) + speed_text(report, report.scaling.points[lost.point]);
  const double beyond = lost.actual_s - lost.ideal_s;
  const auto causes = lost_causes(report, lost);
  if (causes.empty() || beyond < little_lost * lost.actual_s) {
    text += "; next to nothing is lost to a perfect division";
  } else {
    text += fmt::format("; of the {} beyond a perfect division, {} are {}", seconds(beyond),
                        seconds(causes.front().seconds), causes.front().name);
  }
  if (const std::string rank = rank_text(run); !rank.empty()) text += ", and " + rank;
  return text + accuracy_text(report, report.scaling.points[lost.point]) + ".";
}

// The ranks that PyTorch's Flight Recorder shows to be at fault, and what each one did not do.
struct Faults {
  std::vector<int> ranks;
  std::vector<std::string> texts;
};
Faults faults_of(const RunAnalysis& run) {
  Faults faults;
  for (const RankSummary& rank : run.per_rank) {
    const auto fault = rank.facts.find("fault");
    if (fault == rank.facts.end()) continue;
    faults.ranks.push_back(rank.rank);
    faults.texts.push_back(fault->second);
  }
  return faults;
}

// A run that hangs, lost events or is damaged: what to repair before anything else. "" where it is whole.
std::string repair_text(const RunAnalysis& run) {
  if (const Faults faults = faults_of(run); !faults.ranks.empty()) {
    return fmt::format("First find out what {} did instead: look at the stacks of {} there, and at the GPUs.",
                       rank_list(faults.ranks), faults.ranks.size() == 1 ? "the process" : "the processes");
  }
  if (!run.hangs.empty()) {
    std::vector<int> missing;
    for (const auto& rank : run.hangs.front().missing) missing.push_back(rank.rank);
    return fmt::format(
        "First find out why {} did not come to that call: the viewer shows the last ranges (`paceline view {}`).",
        rank_list(missing), run.path);
  }
  if (!run.damage.empty()) {
    return "First get the whole trace: copy the damaged file again, or record again, because the report refuses what "
           "depends on it.";
  }
  if (run.refused()) {
    return "First record again without losses (a larger --buffer, or --lossless), because the report refuses what "
           "depends on the lost events.";
  }
  if (run.failed) return "First find out why the program failed: its figures cover only what ran.";
  return run.ended ? "" : "First find out why the job did not end by itself: its figures cover only what ran.";
}

std::string state_of_broken(const Report& report, const RunAnalysis& run) {
  const std::string whose = report.runs.size() > 1 ? run.name + ": " : "";
  std::string text;
  if (const Faults faults = faults_of(run); !faults.ranks.empty()) {
    text = fmt::format("The job hangs because of {}: {}.", rank_list(faults.ranks), joined(faults.texts, "; "));
  } else if (!run.hangs.empty()) {
    text = hang_text(run.hangs.front());
  } else if (!run.damage.empty()) {
    text = fmt::format("The trace is damaged ({}), so where the time went is not known.", run.damage.front());
  } else {
    text = without_full_stop(run.refused() ? report.headline : sudden_ends_text(run.per_rank)) + ".";
  }
  return whose + text;
}

std::string prediction_sentence(const RunAnalysis& run, const Prediction& first, const std::string& brings) {
  std::string interval;
  if (first.ci95) interval = fmt::format(", {} to {} at 95 %", seconds(first.ci95->low), seconds(first.ci95->high));
  return fmt::format(
             "Make this change first: {}, which is predicted to take the mean step from {} to {} ({:.1f} % less{}){}.",
             first.title, seconds(run.what_if->step_s), seconds(first.step_s), 100 * (1 - first.ratio), interval,
             brings) +
         training_note(first);
}

// Why no change is named as the one to make first, without a full stop. The table of changes lists the relief of a rank
// even where chance may have made the rank slow.
// Why a prediction is no advice.
const char* doubt_about(const Prediction& prediction) {
  return prediction.error_unknown ? "the error of such predictions is not known"
         : prediction.ci95        ? "the interval of this prediction holds no change"
                                  : "the run is too short for an interval";
}

std::string no_change_text(const RunAnalysis& run) {
  const Prediction* relief = best_relief(run);
  const Prediction* faster = best_faster_work(run);
  const Prediction* other = best_uncertain(run);
  if (other != nullptr && (relief == nullptr || other->ratio < relief->ratio)) {
    return fmt::format("No change is certain to make a step shorter: for \"{}\", {:.1f} % less is predicted, but {}",
                       other->title, 100 * (1 - other->ratio), doubt_about(*other));
  }
  if (relief == nullptr && faster != nullptr) {
    return fmt::format("Only faster computation makes a step 1 % shorter: {} is predicted to take {:.1f} % less",
                       faster->title, 100 * (1 - faster->ratio));
  }
  if (relief == nullptr) return "No change that can be predicted makes a step 1 % shorter";
  const Slowest slowest = slowest_of(run);
  std::string but = why_lateness_is_unknown(run);
  if (but.empty()) {
    but = slowest.rank == nullptr && slowest.host == nullptr ? "no rank is late beyond chance" : doubt_about(*relief);
  }
  return fmt::format("No change is certain to make a step shorter: for \"{}\", {:.1f} % less is predicted, but {}",
                     relief->title, 100 * (1 - relief->ratio), but);
}

std::string change_of_starved(const RunAnalysis& run) {
  return fmt::format("Make this change first: {}. Other changes would be judged by the times of starved threads.",
                     starved_remedy(run));
}

std::string change_of_scaling(const Report& report, const LostTime& lost) {
  const auto causes = lost_causes(report, lost);
  const RunAnalysis& run = report.runs[lost.many.front()];
  if (is_starved(run)) return change_of_starved(run);
  const Prediction* first = first_prediction(run);
  const auto without = [&](double seconds) {
    const auto s = speed_up_without(report, lost, seconds);
    return s ? fmt::format("{} ranks would be about {} times as fast as one instead of {}", lost.ranks, fixed(*s, 2),
                           fixed(*report.scaling.points[lost.point].speedup, 2))
             : "";
  };
  const bool by_prediction =
      first != nullptr && (causes.empty() || causes.front().predicted || gain_s(run, *first) > causes.front().seconds);
  if (by_prediction) {
    const std::string s = without(gain_s(run, *first));
    return prediction_sentence(run, *first, s.empty() ? "" : ", so that " + s);
  }
  if (causes.empty()) return no_change_text(run) + ".";
  const std::string s = without(causes.front().seconds);
  return fmt::format("Make this change first: {}{}.", causes.front().remedy,
                     s.empty() ? "" : fmt::format(". Without these {}, {}", seconds(causes.front().seconds), s));
}

std::string change_of_run(const RunAnalysis& run) {
  if (is_starved(run)) return change_of_starved(run);
  if (const Prediction* first = first_prediction(run)) return prediction_sentence(run, *first, "");
  if (static_cast<int>(run.per_rank.size()) < run.ranks) {
    return "First collect the files of the other ranks: without them, the report cannot show which rank limits the "
           "others.";
  }
  if (run.iterations.count == 0) {
    const Copies copies = copies_of(run);
    const GpuSums gpus = gpu_sums(run);
    if (copies.ns > gpus.compute_ns && 2 * copies.ns > gpus.span_ns) {
      return fmt::format(
          "First copy less, or beside the computation: the GPUs copy longer than they compute ({} "
          "against {}).",
          duration(copies.ns), duration(gpus.compute_ns));
    }
    return "First name the training steps, so that the report can break them down.";
  }
  const std::string none = run.what_if ? no_change_text(run) : "";
  if (!run.breakdown || run.breakdown->serial_ns < little_lost * static_cast<double>(run.breakdown->wall_ns)) {
    return none.empty() ? "" : none + ".";
  }
  const std::string serial =
      fmt::format("{} ({}) do not shrink when ranks are added", duration(run.breakdown->serial_ns),
                  percent(share(run.breakdown->serial_ns, run.breakdown->wall_ns)));
  return (none.empty() ? "Of the wall time, " : none + "; of the wall time, ") + serial + ".";
}

}  // namespace verdict_parts

std::optional<std::size_t> focus_of(const Report& report) {
  if (const ScalingPoint* best = headline_point(report.scaling)) {
    for (const std::size_t run : best->runs) {
      if (report.run_of_scaling_run[run]) return report.run_of_scaling_run[run];
    }
  }
  std::optional<std::size_t> focus;
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    if (!focus || report.runs[r].ranks > report.runs[*focus].ranks) focus = r;
  }
  return focus;
}

const LostTime* headline_lost_time(const Report& report) {
  const ScalingPoint* best = headline_point(report.scaling);
  const auto found = std::ranges::find_if(
      report.lost_time, [&](const LostTime& lost) { return best == &report.scaling.points[lost.point]; });
  return found == report.lost_time.end() ? nullptr : &*found;
}

ReportVerdict verdict_of(const Report& report) {
  using namespace verdict_parts;
  const auto broken =
      std::ranges::find_if(report.runs, [](const RunAnalysis& run) { return !repair_text(run).empty(); });
  const bool nothing_else = report.scaling.points.size() < 2;
  if (broken != report.runs.end() && nothing_else) return {state_of_broken(report, *broken), repair_text(*broken)};
  if (const LostTime* lost = headline_lost_time(report)) {
    return {state_of_scaling(report, *lost), change_of_scaling(report, *lost)};
  }
  if (const auto focus = focus_of(report)) {
    const RunAnalysis& run = report.runs[*focus];
    return {state_of_run(report, run), broken != report.runs.end() ? repair_text(*broken) : change_of_run(run)};
  }
  if (const ScalingPoint* best = headline_point(report.scaling)) {
    std::string state = speed_text(report, *best);
    const auto& fits = report.scaling.fits;
    if (!fits.empty() && !fits.front().misfit && fits.front().serial_fraction < 1) {
      state += fmt::format("; by Amdahl's law, a share of {} of the work does not shrink with ranks",
                           fixed(fits.front().serial_fraction, 3));
    }
    return {state + accuracy_text(report, *best) + ".", from_tables};
  }
  return {report.headline, from_tables};
}

}  // namespace paceline::analysis
