// SPDX-License-Identifier: Apache-2.0
// The verdict of a report: how well the job runs or scales, what limits it, which rank, and what to change first.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "analysis/report/broken_run.h"
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
constexpr const char* from_tables = "First record the runs (`paceline record`) to learn what limits them.";

// What a verdict leaves out, in this order, until it has few words; the reasons and the tables have it. Never the
// cause.
enum class Cut { nothing, serial_time, nobody_late, doubt, only_host, details, uncertain_change, second_rank, end };

std::string rank_name(const RunAnalysis& run, const LateRank& late, Cut cut) {
  const RankSummary& rank = run.per_rank[late.rank];
  const bool has_host = run.hosts.size() > 1 || cut < Cut::only_host;
  return fmt::format("rank {}{}", rank.rank, has_host ? on_host(rank) : "");
}

// "10.2 ms late in each step", or "10.2 ms late on average and late in 150 of 450 steps".
std::string lateness_text(double behind_ns, std::size_t affected, std::size_t iterations, Cut cut) {
  constexpr double nearly_each = 0.9;
  std::string text = seconds(1e-9 * behind_ns) + " late";
  if (static_cast<double>(affected) >= nearly_each * static_cast<double>(iterations)) return text + " in each step";
  text += " on average";
  if (affected == 0) return text;
  if (cut >= Cut::details) return text + fmt::format(" ({} of {} steps)", affected, iterations);
  return text + fmt::format(" and late in {} of {} steps", affected, iterations);
}

// Whom the tests name, and of these the one that costs most: "rank 37 on node05 holds the others up, 10.2 ms late in
// each step, mostly blocked in the function load (train.py:41)".
struct Accused {
  const LateRank* late = nullptr;  // nullptr: nobody
  std::string holds_up, how_late;
};
Accused accused_of(const RunAnalysis& run, Cut cut) {
  const Slowest slowest = slowest_of(run);
  if (slowest.host) {
    return {.late = slowest.host,
            .holds_up = fmt::format("the host {} holds the others up", run.hosts[slowest.host->rank]),
            .how_late = fmt::format(", its ranks {} late on average", seconds(1e-9 * slowest.host->behind_ns))};
  }
  if (slowest.rank) {
    const auto i = static_cast<std::size_t>(slowest.rank - run.lateness.late.data());
    const LatenessCause cause = i < run.lateness_causes.size() ? run.lateness_causes[i] : LatenessCause{};
    Accused accused{.late = slowest.rank,
                    .holds_up = rank_name(run, *slowest.rank, cut) + " holds the others up",
                    .how_late = ", " + lateness_text(slowest.rank->behind_ns, cause.pattern.affected,
                                                     run.lateness.iterations, cut)};
    const std::string why = run.causes ? main_cause_of_lateness(run.causes->ranks[slowest.rank->rank]) : "";
    const bool has_place = std::ranges::any_of(std::array{" in the ", " after the ", " on "},
                                               [&](const char* place) { return why.find(place) != std::string::npos; });
    if (cause.phase && !has_place) {
      accused.how_late += fmt::format(", because its {} takes longer", slow_phase_name(*cause.phase));
    }
    accused.how_late += why;
    return accused;
  }
  if (run.irregularity.late.empty()) return {};
  const LateRank& late = run.irregularity.late.front();
  return {.late = &late,
          .holds_up = rank_name(run, late, cut) + " is irregular, not slow",
          .how_late = fmt::format(": it costs a step {} on average", seconds(1e-9 * late.behind_ns))};
}

// Why nobody is named as late; a rank for whose evaluation or checkpoint the others wait is named for that.
std::string nobody_text(const RunAnalysis& run, Cut cut) {
  constexpr double much = 0.05;  // of the wall time
  for (const LoneInterludes& lone : run.lone_interludes) {
    if (share(lone.waited_ns, run.wall_ns) < much) continue;
    return fmt::format("rank {} {} alone, for which {} {}", run.per_rank[lone.rank].rank,
                       lone.phase == Phase::evaluate ? "evaluates" : "saves checkpoints",
                       run.per_rank.size() == 2 ? "the other rank waits" : "the other ranks wait",
                       duration(lone.waited_ns));
  }
  if (run.per_rank.size() < 2 || run.lateness.iterations == 0 || cut >= Cut::second_rank) return "";
  const std::string unknown = why_lateness_is_unknown(run);
  return unknown.empty() && cut < Cut::nobody_late ? "no rank is late beyond chance" : unknown;
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

// What the GPUs do most beside computing, over all ranks; "" where no rank has a GPU.
std::string limit_of_gpus(const RunAnalysis& run) {
  constexpr double busy = 0.8;
  const GpuSums sums = gpu_sums(run);
  if (sums.span_ns == 0) return "";
  if (const Copies copies = copies_of(run); copies.ns > sums.compute_ns) {
    return fmt::format("copies of the GPUs take {}, {} of it {}", duration(copies.ns), duration(copies.largest_ns),
                       copies.largest);
  }
  if (const double computing = share(sums.compute_ns, sums.span_ns); computing >= busy) {
    return fmt::format("the GPUs compute during {} of their time", percent(computing));
  }
  if (sums.exposed_ns > sums.idle_ns) {
    return fmt::format("exposed communication takes {} of the GPUs' time",
                       percent(share(sums.exposed_ns, sums.span_ns)));
  }
  return fmt::format("the GPUs are idle during {} of their time", percent(share(sums.idle_ns, sums.span_ns)));
}

std::string row_text(const BreakdownRow& row, std::int64_t wall_ns) {
  return fmt::format("{} takes {} of the wall time",
                     row.phase == Phase::startup         ? "start-up"
                     : row.phase == Phase::communication ? "communication, waiting included,"
                                                         : phase_name(row.phase),
                     percent(share(row.ns, wall_ns)));
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
  if (largest->phase == Phase::communication && behind_headline) return "";
  return row_text(*largest, b.wall_ns);
}

// "communication, waiting included, takes 18 % of the wall time" where a rank that is late costs little and
// communication costs more, without the waiting for that rank; else the rank. GPUs have limits of their own. The CPUs
// of a virtual machine differ in speed by some percent for seconds, and then the next run has another late rank.
std::string communication_or_rank(const RunAnalysis& run, const Accused& accused) {
  constexpr double little = 0.05;  // of a step
  const std::string rank = accused.holds_up + accused.how_late;
  const double late = accused.late->share_of_step;
  if (!run.breakdown || gpu_sums(run).span_ns > 0 || late > little) return rank;
  const auto& rows = run.breakdown->rows;
  const auto row = std::ranges::find_if(
      rows, [](const BreakdownRow& one) { return one.phase == Phase::communication && one.inside_iterations; });
  if (row == rows.end() || share(row->ns, run.breakdown->wall_ns) < 2 * late) return rank;
  return row_text(*row, run.breakdown->wall_ns);
}

// Whether CPUs that the run lacked cost most. Collectives that are too small may cost more, which keep threads awake,
// or slow iterations with another cause.
bool lacks_cpus_first(const RunAnalysis& run) {
  if (!is_starved(run)) return false;
  const SmallCollectives small = run.small_collectives.value_or(SmallCollectives{});
  if (of_the_steps(run, small.most_lost()) > main_loss(run)->seconds) return false;
  const LongerCauses* slow = slow_iterations(run);
  if (slow == nullptr) return true;
  const double lacked_ns = slow->parts[LossCause::no_cpu] + slow->parts[LossCause::throttled];
  return 1e-9 * (slow->excess_ns - lacked_ns) <= main_loss(run)->seconds;
}

// CPUs that the run lacked, and who holds the others up beside that.
std::string state_of_starved(const RunAnalysis& run, Cut cut) {
  std::string text = starved_cost_text(run);
  const Accused accused = accused_of(run, cut);
  const bool names_rank =
      accused.late != nullptr && (slowest_of(run).host != nullptr || !is_starved_as_others(run, accused.late->rank));
  if (!names_rank || cut < Cut::details) text += other_program_text(run);  // the change names the program, too
  if (names_rank) text += "; " + accused.holds_up;
  return capitalised(std::move(text));
}

// The mean where predictions stand beside it, which are means.
std::string step_text(const RunAnalysis& run) {
  const std::string ranks = static_cast<int>(run.per_rank.size()) < run.ranks ? " of " + ranks_text(run) : "";
  return run.what_if ? fmt::format("A step{} takes {} (mean)", ranks, seconds(run.what_if->step_s))
                     : fmt::format("A step{} takes {} (median)", ranks, duration(run.iterations.steady_median_ns));
}

// What a step costs, and the one reason that costs most: a rank, slow iterations, or else what all ranks do. `change`
// is the sentence behind it.
std::string state_of_run(const Report& report, const RunAnalysis& run, const std::string& change, Cut cut) {
  if (lacks_cpus_first(run)) return state_of_starved(run, cut) + ".";
  const bool alone = report.scaling.comparisons.empty() && report.scaling.points.size() < 2;
  const bool has_steps =
      run.iterations.count > 0 && (report.runs.size() == 1 || (run.efficiencies && run.ranks > 1 && alone));
  std::string text = has_steps ? step_text(run) : without_full_stop(report.headline);
  const Accused accused = accused_of(run, cut);
  const LongerCauses* slow = slow_iterations(run);
  const double steps_ns = std::accumulate(run.lateness_table.step_ns.begin(), run.lateness_table.step_ns.end(), 0.0);
  const double accused_ns = accused.late == nullptr ? 0 : accused.late->share_of_step * steps_ns;
  const char* const joint = has_steps ? ": " : "; ";
  if (slow != nullptr && slow->excess_ns > accused_ns) {
    // One rank that evaluates alone costs more than they do, or is their cause.
    const bool evaluates_alone = accused.late == nullptr && !nobody_text(run, Cut::second_rank).empty();
    const SlowText shortest = evaluates_alone ? SlowText::without_cause : SlowText::without_rank;
    text += joint + slow_iterations_text(*slow, cut >= Cut::second_rank ? shortest
                                                : cut >= Cut::details   ? SlowText::counted
                                                                        : SlowText::brief);
    if (is_starved(run) && cut < Cut::second_rank) text += "; " + starved_cost_text(run);
    const bool is_same = accused.late != nullptr && slowest_of(run).host == nullptr &&
                         slow->rank == run.per_rank[accused.late->rank].rank;
    if (accused.late != nullptr && !is_same && cut < Cut::second_rank) text += "; " + accused.holds_up;
  } else if (accused.late != nullptr) {
    text += joint + (has_steps ? communication_or_rank(run, accused) : accused.holds_up + accused.how_late);
  } else if (const std::string limit = limit_of_run(run, !has_steps); !limit.empty()) {
    text += joint + limit;
  }
  const std::string nobody = accused.late == nullptr ? nobody_text(run, cut) : "";
  if (!nobody.empty() && change.find(nobody) == std::string::npos) text += "; " + nobody;
  return text + ".";
}

// As the headline, without a formula.
std::string speed_text(const Report& report, const ScalingPoint& point) {
  if (point.verdict != Verdict::unknown) return without_full_stop(report.headline);
  std::string text =
      fmt::format("In these runs, {} ranks trained {} times as fast as one{}", point.ranks, fixed(*point.speedup, 2),
                  baseline_lacked_cpus(report, point) ? ", which lacked CPUs" : "");
  if (!point.differences.empty()) text += ", with a change of " + differences_text(point.differences);
  return text;
}

// "; test accuracy 91.0 % (one rank: 93.0 %)", because speed without accuracy says little. "" where it is not known.
std::string accuracy_text(const Report& report, const ScalingPoint& point, Cut cut) {
  if (!point.baseline || !point.accuracy || cut >= Cut::details) return "";
  const auto& one = report.scaling.points[*point.baseline].accuracy;
  if (!one) return "";
  return fmt::format("; test accuracy {} (one rank: {})", percent(*point.accuracy), percent(*one));
}

std::string state_of_scaling(const Report& report, const LostTime& lost, Cut cut) {
  const RunAnalysis& run = report.runs[lost.many.front()];
  std::string text = speed_text(report, report.scaling.points[lost.point]);
  const double beyond = lost.actual_s - lost.ideal_s;
  const auto causes = lost_causes(report, lost);
  if (is_starved(run)) {
    if (text.starts_with('I')) text[0] = 'i';
    text = state_of_starved(run, cut) + "; " + text;
  } else if (causes.empty() || beyond < little_lost * lost.actual_s) {
    text += "; next to nothing is lost to a perfect division";
  } else {
    text +=
        fmt::format("; {} of {} lost are {}", seconds(causes.front().seconds), seconds(beyond), causes.front().name);
  }
  const Accused accused = accused_of(run, cut);
  if (accused.late != nullptr && !is_starved(run) && cut < Cut::second_rank) text += ", and " + accused.holds_up;
  return text + accuracy_text(report, report.scaling.points[lost.point], cut) + ".";
}

// The interval is predicted for the mean step. The relief of a rank that is late beyond chance may lack one.
std::string prediction_sentence(const Prediction& first, const std::string& brings) {
  const std::string step = first.ci95
                               ? fmt::format("{} to {} (95 %)", seconds(first.ci95->low), seconds(first.ci95->high))
                               : "about " + seconds(first.step_s);
  return fmt::format("Change first: {}; predicted{}: {}{}.", marked_title(first), brings.empty() ? "" : " step", step,
                     brings);
}

// Why a prediction is no advice.
const char* doubt_about(const Prediction& prediction) {
  return prediction.error_unknown ? "its error is not known"
         : prediction.ci95        ? "its interval holds no change"
                                  : "the run is too short for an interval";
}

// "No change is shown to help: "double buffering" may save 12.5 %, but its error is not known".
std::string uncertain_text(const Prediction& change, const std::string& doubt, Cut cut) {
  std::string text = "No change is shown to help";
  if (cut < Cut::uncertain_change)
    text += fmt::format(": \"{}\" may save {:.1f} %", change.title, 100 * (1 - change.ratio));
  return cut < Cut::doubt ? text + ", but " + doubt : text;
}

// Why no change is named as the one to make first, without a full stop. The table of changes lists the relief of a rank
// even where chance may have made the rank slow.
std::string no_change_text(const RunAnalysis& run, Cut cut) {
  const Prediction* relief = best_relief(run);
  const Prediction* faster = best_faster_work(run);
  const Prediction* other = best_uncertain(run);
  if (other != nullptr && (relief == nullptr || other->ratio < relief->ratio)) {
    return uncertain_text(*other, doubt_about(*other), cut);
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
  return uncertain_text(*relief, but, cut);
}

std::string change_of_starved(const RunAnalysis& run) { return fmt::format("Change first: {}.", starved_remedy(run)); }

std::string change_of_scaling(const Report& report, const LostTime& lost, Cut cut) {
  const auto causes = lost_causes(report, lost);
  const RunAnalysis& run = report.runs[lost.many.front()];
  if (is_starved(run)) return change_of_starved(run);
  const Prediction* first = first_prediction(run);
  const bool by_prediction =
      first != nullptr && (causes.empty() || causes.front().predicted || gain_s(run, *first) > causes.front().seconds);
  if (!by_prediction && causes.empty()) return no_change_text(run, cut) + ".";
  const double gone_s = by_prediction ? gain_s(run, *first) : causes.front().seconds;
  const auto s = speed_up_without(report, lost, gone_s);
  if (by_prediction) {
    return prediction_sentence(*first, s ? fmt::format(", speed-up about {}", fixed(*s, 2)) : "");
  }
  return fmt::format("Change first: {}{}.", causes.front().remedy,
                     s ? fmt::format(" (speed-up at most {})", fixed(*s, 2)) : "");
}

// Collectives that are too small; no prediction says what larger ones save.
std::string larger_calls_text(const SmallCollectives& small) {
  return fmt::format("First {}: each of the {} calls of {} in an iteration costs {}, however small it is.",
                     small.are_buckets() ? "send larger buckets" : "join the collectives", count(small.calls),
                     small.operation, duration(small.fixed_ns));
}

std::string change_of_run(const RunAnalysis& run, Cut cut) {
  if (lacks_cpus_first(run)) return change_of_starved(run);
  if (const Prediction* first = first_prediction(run)) return prediction_sentence(*first, "");
  if (static_cast<int>(run.per_rank.size()) < run.ranks) {
    return "First collect the files of the other ranks: without them, no rank can be judged.";
  }
  if (run.small_collectives) return larger_calls_text(*run.small_collectives);
  if (run.iterations.count == 0) {
    const Copies copies = copies_of(run);
    const GpuSums gpus = gpu_sums(run);
    if (copies.ns > gpus.compute_ns && 2 * copies.ns > gpus.span_ns) {
      return fmt::format("First copy less, or beside the computation, which takes {}.", duration(gpus.compute_ns));
    }
    return "First name the training steps: then the report breaks them down.";
  }
  const std::string none = run.what_if ? no_change_text(run, cut) : "";
  if (!run.breakdown || (cut >= Cut::serial_time && !none.empty()) ||
      run.breakdown->serial_ns < little_lost * static_cast<double>(run.breakdown->wall_ns)) {
    return none.empty() ? "" : none + ".";
  }
  return fmt::format("{}{} ({} of the wall time) do not shrink with ranks.", none.empty() ? "" : none + "; ",
                     duration(run.breakdown->serial_ns),
                     percent(share(run.breakdown->serial_ns, run.breakdown->wall_ns)));
}

ReportVerdict verdict_with(const Report& report, Cut cut) {
  const auto broken = std::ranges::find_if(
      report.runs, [&](const RunAnalysis& run) { return !repair_text(run, cut < Cut::details).empty(); });
  const bool nothing_else = report.scaling.points.size() < 2;
  if (broken != report.runs.end() && nothing_else) {
    return {state_of_broken(report, *broken), repair_text(*broken, cut < Cut::details)};
  }
  if (const LostTime* lost = headline_lost_time(report)) {
    return {state_of_scaling(report, *lost, cut), change_of_scaling(report, *lost, cut)};
  }
  if (const auto focus = focus_of(report)) {
    const RunAnalysis& run = report.runs[*focus];
    const std::string change =
        broken != report.runs.end() ? repair_text(*broken, cut < Cut::details) : change_of_run(run, cut);
    return {state_of_run(report, run, change, cut), change};
  }
  if (const ScalingPoint* best = headline_point(report.scaling)) {
    std::string state = speed_text(report, *best);
    const auto& fits = report.scaling.fits;
    if (!fits.empty() && !fits.front().misfit && fits.front().serial_fraction < 1) {
      state += fmt::format("; by Amdahl's law, {} of the work does not shrink", fixed(fits.front().serial_fraction, 3));
    }
    return {state + accuracy_text(report, *best, cut) + ".", from_tables};
  }
  return {report.headline, from_tables};
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
  constexpr std::size_t most_words = 40;
  ReportVerdict verdict;
  for (int cut = 0; cut < static_cast<int>(Cut::end); ++cut) {
    verdict = verdict_with(report, static_cast<Cut>(cut));
    if (word_count(verdict.state) + word_count(verdict.change) <= most_words) break;
  }
  return verdict;
}

}  // namespace paceline::analysis
