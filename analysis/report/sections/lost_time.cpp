// What keeps a speed-up from N, as a sentence: over all repeats, and with the cause only where it was measured.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/report/findings.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace {

constexpr double much_cpu_waiting = 0.05;  // of a main thread's time
constexpr double much_slower = 0.1;        // of the time that a perfect division would leave

// "1.61 s", or "1.61 s (mean of 4 runs, 1.58–1.66 s)"
std::string mean_text(double mean, std::size_t runs, double low, double high) {
  if (runs < 2) return seconds(mean);
  return fmt::format("{} (mean of {} runs, {} to {})", seconds(mean), runs, seconds(low), seconds(high));
}

std::optional<double> mean_cpu_waiting(const Report& report, const std::vector<std::size_t>& runs) {
  double sum = 0;
  std::size_t counted = 0;
  for (const std::size_t r : runs) {
    if (!report.runs[r].waiting_for_cpu) continue;
    sum += *report.runs[r].waiting_for_cpu;
    ++counted;
  }
  if (counted == 0) return std::nullopt;
  return sum / static_cast<double>(counted);
}

// Waiting for a CPU explains slower work before memory or clocks do: a thread that waits computes nothing.
std::string slowdown_cause(const Report& report, const LostTime& lost) {
  const auto many = mean_cpu_waiting(report, lost.many), one = mean_cpu_waiting(report, lost.one);
  if (many && *many >= much_cpu_waiting && *many > one.value_or(0) + much_cpu_waiting / 2) {
    return fmt::format(
        " The main threads waited {} of the time for a CPU{}: more threads want to run than there are CPUs. Give each "
        "rank fewer threads or CPUs of its own.",
        percent(*many), one ? fmt::format(", against {} on 1 rank", percent(*one)) : "");
  }
  return fmt::format(
      " {} Ranks that share a machine share its memory bandwidth, its caches and its clock frequency: compare with "
      "fewer threads a rank, or with one rank a machine.",
      many ? fmt::format("The main threads waited only {} of the time for a CPU.", percent(*many))
           : "Waits for a CPU were not counted (`paceline record` counts them where the kernel offers it).");
}

}  // namespace

std::string lost_time_text(const Report& report, const LostTime& lost) {
  std::string text = fmt::format(
      "Averaged over their wall times, {} ranks took {} where {} of the 1-rank {} is {}. Of the {} between them, ",
      lost.ranks, mean_text(lost.actual_s, lost.many.size(), lost.actual_low_s, lost.actual_high_s),
      lost.ranks == 2 ? "half" : fmt::format("1/{}", lost.ranks), lost.one.size() > 1 ? "time" : "run",
      mean_text(lost.ideal_s, lost.one.size(), lost.ideal_low_s, lost.ideal_high_s),
      seconds(lost.actual_s - lost.ideal_s));
  text += lost.serial_s >= 0 ? fmt::format("serial work that does not shrink keeps {}", seconds(lost.serial_s))
                             : fmt::format("serial work gives back {} (it shrank by more than 1/{})",
                                           seconds(-lost.serial_s), lost.ranks);
  text += fmt::format(", communication {}", seconds(lost.overhead_s));
  if (lost.overhead_s > 0) text += fmt::format(" ({} of it waiting for the last rank)", seconds(lost.waiting_s));
  text +=
      lost.slowdown_s >= 0
          ? fmt::format(", and {} are parallel work that took longer for the same images than on 1 rank.",
                        seconds(lost.slowdown_s))
          : fmt::format("; parallel work took {} less for the same images than on 1 rank.", seconds(-lost.slowdown_s));
  if (lost.slowdown_s > much_slower * lost.ideal_s) text += slowdown_cause(report, lost);
  return text;
}

std::optional<MeasuredShare> measured_serial_share(const Report& report, const ScalingPoint& point) {
  MeasuredShare measured;
  for (const std::size_t r : point.runs) {
    const auto run = report.run_of_scaling_run[r];
    if (!run || !report.runs[*run].breakdown) continue;
    const Breakdown& breakdown = *report.runs[*run].breakdown;
    const double share = breakdown.serial_share;
    measured.low = measured.runs == 0 ? share : std::min(measured.low, share);
    measured.high = measured.runs == 0 ? share : std::max(measured.high, share);
    measured.share += share;
    measured.ci95 = breakdown.serial_share_ci95;
    ++measured.runs;
  }
  if (measured.runs == 0) return std::nullopt;
  measured.share /= static_cast<double>(measured.runs);
  if (measured.runs > 1) measured.ci95.reset();
  return measured;
}

std::string measured_share_text(const MeasuredShare& measured) {
  if (measured.runs == 1) return with_interval(fixed(measured.share, 4), measured.ci95, 4);
  return fmt::format("{} (mean of {} runs, {}–{})", fixed(measured.share, 4), measured.runs, fixed(measured.low, 4),
                     fixed(measured.high, 4));
}

}  // namespace paceline::analysis
