// SPDX-License-Identifier: Apache-2.0
// The test accuracy of a run, and speed that was bought with accuracy.
#include <charconv>
#include <cmath>

#include "analysis/report/sections.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace accuracy_section {

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  if (!run.accuracy) return;
  std::string text = fmt::format("The final test accuracy is {}.", percent(*run.accuracy));
  text += run.seconds_to_accuracy ? fmt::format(" The run reached {:g} % {} after its start.",
                                                100 * run.target_accuracy, seconds(*run.seconds_to_accuracy))
                                  : fmt::format(" The run did not reach {:g} %.", 100 * run.target_accuracy);
  out.push_back({Severity::info, std::move(text)});
}

void figures(const RunAnalysis& run, Json& out) {
  set(out, "accuracy", run.accuracy);
  set(out, "best_accuracy", run.best_accuracy);
  set(out, "seconds_to_accuracy", run.seconds_to_accuracy);
  if (run.accuracy) out["target_accuracy"] = run.target_accuracy;
}

void charts(const RunAnalysis& run, std::vector<Chart>& out) {
  if (run.accuracy_curve.size() < 2) return;
  nlohmann::json points = nlohmann::json::array();
  for (const auto& point : run.accuracy_curve) {
    points.push_back({{"x", 1e-9 * static_cast<double>(point.time_ns)}, {"y", 100 * point.accuracy}});
  }
  out.push_back({.title = "Test accuracy over time, %",
                 .kind = "accuracy",
                 .data = {{"points", points}, {"target", 100 * run.target_accuracy}},
                 .height = 240});
}

// The difference of two accuracies that the choice of test images alone exceeds in 5 of 100 cases: 1.96 standard errors
// of the difference of two binomial shares. Nothing where the number of test images is not known.
std::optional<double> accuracy_by_chance(const ScalingPoint& one, const ScalingPoint& other) {
  double variance = 0;
  for (const ScalingPoint* point : {&one, &other}) {
    const auto found = point->config.find("test_images");
    if (found == point->config.end()) return std::nullopt;
    double images = 0;
    const char* const end = found->second.data() + found->second.size();
    const auto parsed = std::from_chars(found->second.data(), end, images);
    if (parsed.ec != std::errc() || parsed.ptr != end || !(images >= 1)) return std::nullopt;
    variance += *point->accuracy * (1 - *point->accuracy) / images;
  }
  return 1.96 * std::sqrt(variance);
}

void compare(const ScalingPoint& one, const ScalingPoint& point, SentenceList& out) {
  const double lost = *one.accuracy - *point.accuracy;
  const auto chance = accuracy_by_chance(one, point);
  if (lost > chance.value_or(0.01) && *point.speedup > 1 && point.verdict != Verdict::undecided) {
    out.say("accuracy", Severity::warning,
            fmt::format("Speed bought with accuracy: {} ranks are {} times as fast{} but reach {} where 1 rank reaches "
                        "{}{}. More ranks make a larger batch. A learning rate that grows with the batch and warm-up "
                        "usually restore the accuracy.",
                        point.ranks, fixed(*point.speedup, 2),
                        point.verdict == Verdict::unknown ? " in the runs measured" : "", percent(*point.accuracy),
                        percent(*one.accuracy),
                        chance ? fmt::format(", more than the {} points that the choice of test images explains (95 %)",
                                             fixed(100 * *chance, 1))
                               : ""));
  }
  if (one.seconds_to_accuracy && point.seconds_to_accuracy) {
    out.say("target", Severity::info,
            fmt::format("{} ranks need {} to the target accuracy, 1 rank needs {}. The ratio is {}, without an "
                        "interval.",
                        point.ranks, seconds(*point.seconds_to_accuracy), seconds(*one.seconds_to_accuracy),
                        fixed(*one.seconds_to_accuracy / *point.seconds_to_accuracy, 2)));
  } else if (one.seconds_to_accuracy) {
    out.say("target", Severity::warning,
            fmt::format("The target accuracy that 1 rank reaches in {} is never reached by {} ranks.",
                        seconds(*one.seconds_to_accuracy), point.ranks));
  }
}

void lost_findings(const Report& report, SentenceList& out) {
  const auto& points = report.scaling.points;
  for (const auto& point : points) {
    if (!point.baseline || point.ranks == 1 || !point.accuracy || !point.speedup) continue;
    const ScalingPoint& one = points[*point.baseline];
    if (one.accuracy) compare(one, point, out);
  }
}

}  // namespace accuracy_section

RunSection sections::accuracy() {
  using namespace accuracy_section;
  return {.findings = findings, .figures = figures, .charts = charts};
}

ScalingSection sections::accuracy_lost() { return {.findings = accuracy_section::lost_findings}; }

}  // namespace paceline::analysis
