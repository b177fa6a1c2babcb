// The iterations of a run and its throughput.
#include <cmath>

#include "analysis/report/sections.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace iterations_section {

// "The steps became slower at iteration 36: 802 ms before, 2.21 s from there on (2.76 times)."
void change_finding(const RunAnalysis& run, std::vector<Finding>& out) {
  const RunIterations& it = run.iterations;
  if (!it.change.change) return;
  const StepChange& change = *it.change.change;
  const bool slower = change.after > change.before;
  const char* const became = slower ? "slower" : "faster";
  std::string text;
  if (change.jump) {
    text = fmt::format("The steps became {} at iteration {}: {} before, {} from there on ({:+.1f} %).", became,
                       it.numbers[it.warmup + change.at], seconds(change.before), seconds(change.after),
                       100 * (change.after / change.before - 1));
  } else {
    text =
        fmt::format("The steps became {} in the course of the run: from {} after warm-up to {} at the end ({:+.1f} %).",
                    became, seconds(change.before), seconds(change.after), 100 * (change.after / change.before - 1));
  }
  if (it.changed_phase) {
    text +=
        fmt::format(" Most of that is {} ({} before, {} after, mean over ranks).", phase_name(it.changed_phase->phase),
                    duration(static_cast<std::int64_t>(it.changed_phase->before_ns)),
                    duration(static_cast<std::int64_t>(it.changed_phase->after_ns)));
  }
  text += fmt::format(" In a run that does not change, chance makes so clear a change in at most {} of 1,000 runs.",
                      change.p <= 0.001 ? "1" : fixed(std::ceil(1000 * change.p), 0));
  out.push_back({slower ? Severity::warning : Severity::info, std::move(text)});
}

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  if (run.iterations.count == 0 && !run.refused()) {
    out.push_back(
        {Severity::warning,
         fmt::format("No iterations were seen. Put {} named \"iteration\" around a training step to get step times, "
                     "throughput and the time that shrinks with ranks.",
                     range_name(run))});
  } else if (!run.images && !run.foreign() && run.can_be_compared()) {
    out.push_back({Severity::warning,
                   "The number of images is not known. Record with `--set images_per_iteration=N` to get images/s and "
                   "speed-ups."});
  }
  change_finding(run, out);
}

void figures(const RunAnalysis& run, Json& out) {
  set(out, "images_per_s", run.images_per_s());
  const RunIterations& it = run.iterations;
  if (it.count == 0) return;
  Json& iterations = out["iterations"] = {{"count", it.count},
                                          {"median_ns", it.median_ns},
                                          {"p95_ns", it.p95_ns},
                                          {"warmup_excluded", it.warmup},
                                          {"steady_median_ns", it.steady_median_ns}};
  if (run.images) iterations["images"] = whole_number(*run.images);
  iterations["change_judged"] = it.change.judged;
  if (it.change.change) {
    const StepChange& change = *it.change.change;
    Json& entry = iterations["change"] = {{"kind", change.jump ? "jump" : "drift"},
                                          {"before_ns", whole_number(std::round(1e9 * change.before))},
                                          {"after_ns", whole_number(std::round(1e9 * change.after))},
                                          {"p", change.p}};
    if (change.jump) entry["iteration"] = it.numbers[it.warmup + change.at];
    if (it.changed_phase) entry["phase"] = phase_name(it.changed_phase->phase);
  }
  set(iterations, "steady_images_per_s", it.steady_images_per_s);
  set(iterations, "steady_images_per_s_ci95", it.steady_ci95);
}

// At most 2,000 points: each is the mean of its neighbours.
void charts(const RunAnalysis& run, std::vector<Chart>& out) {
  const auto& values = run.iterations.seconds;
  if (values.size() < 3) return;
  const std::size_t group = (values.size() + 1999) / 2000;
  nlohmann::json points = nlohmann::json::array();
  for (std::size_t i = 0; i < values.size(); i += group) {
    double sum = 0;
    std::size_t n = 0;
    for (; n < group && i + n < values.size(); ++n) sum += values[i + n];
    points.push_back({{"x", i}, {"y", 1e3 * sum / static_cast<double>(n)}});
  }
  out.push_back({.title = "Time of each iteration, ms",
                 .kind = "iterations",
                 .data = {{"points", points},
                          {"median", 1e-6 * static_cast<double>(run.iterations.median_ns)},
                          {"warmup", run.iterations.warmup}},
                 .height = 240});
}

}  // namespace iterations_section

RunSection sections::iterations() {
  using namespace iterations_section;
  return {.findings = findings, .figures = figures, .charts = charts};
}

}  // namespace paceline::analysis
