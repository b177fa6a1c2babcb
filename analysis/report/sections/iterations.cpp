// The iterations of a run and its throughput.
#include "analysis/report/sections.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace iterations_section {

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  if (run.iterations.count == 0 && !run.refused()) {
    out.push_back({Severity::warning,
                   "No iterations were seen. Put an NVTX range named \"iteration\" around a training step to get step "
                   "times, throughput and the time that shrinks with ranks."});
  } else if (!run.images && run.can_be_compared()) {
    out.push_back({Severity::warning,
                   "The number of images is not known. Record with `--set images_per_iteration=N` to get images/s and "
                   "speed-ups."});
  }
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
