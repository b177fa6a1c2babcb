// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "analysis/report/render.h"
#include "analysis/text/csv.h"
#include "analysis/text/labels.h"

namespace paceline::analysis {
namespace {

template <class T>
std::string or_empty(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "";
}

}  // namespace

std::string render_csv(const Report& report) {
  std::string out =
      "run,ranks,rank,host,epochs,images,seconds,images_per_s,steady_images_per_s,speedup,efficiency,karp_flatt,"
      "accuracy,"
      "seconds_to_accuracy,wall_ns";
  for (std::size_t p = 0; p < phase_count; ++p) out += fmt::format(",{}_ns", phase_name(static_cast<Phase>(p)));
  out += ",waited_ns,caused_ns,lost_events,lost_ns,ended\n";

  // The figures of the whole job, which the rows of its ranks repeat.
  const auto job = [&](std::optional<std::size_t> scaling_run, const std::string& rank, const std::string& host,
                       const std::optional<double>& steady, const RunAnalysis* run) {
    const ScalingPoint* point =
        scaling_run ? &report.scaling.points[report.scaling.point_of_run[*scaling_run]] : nullptr;
    const ScalingRun* source = scaling_run ? &report.scaling_runs[*scaling_run] : nullptr;
    const double images = source != nullptr ? source->images : run->images.value_or(0);
    const double seconds = source != nullptr ? source->seconds : 1e-9 * static_cast<double>(run->wall_ns);
    return fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_field(source != nullptr ? source->label : run->path),
        source != nullptr ? source->ranks : run->ranks, rank, csv_field(host),
        source != nullptr && source->epochs > 0 ? fmt::format("{}", source->epochs) : "",
        images > 0 ? fmt::format("{}", images) : "", seconds,
        images > 0 && seconds > 0 ? fmt::format("{}", images / seconds) : "", or_empty(steady),
        point != nullptr ? or_empty(point->speedup) : "", point != nullptr ? or_empty(point->efficiency) : "",
        point != nullptr ? or_empty(point->karp_flatt) : "",
        or_empty(source != nullptr ? source->accuracy : run->accuracy),
        or_empty(source != nullptr ? source->seconds_to_accuracy : run->seconds_to_accuracy));
  };
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    const RunAnalysis& run = report.runs[r];
    std::optional<std::size_t> scaling_run;
    for (std::size_t s = 0; s < report.scaling_runs.size(); ++s) {
      if (report.run_of_scaling_run[s] == r) scaling_run = s;
    }
    for (std::size_t k = 0; k < run.per_rank.size(); ++k) {
      const RankSummary& rank = run.per_rank[k];
      out += job(scaling_run, std::to_string(rank.rank), rank.host, run.iterations.steady_images_per_s, &run);
      out += fmt::format(",{}", rank.wall_ns);
      for (const std::int64_t ns : rank.phase_ns) out += fmt::format(",{}", ns);
      out += fmt::format(",{},{},{},{},{}\n", run.waits[k].waited_ns, run.waits[k].caused_ns, rank.losses.events,
                         rank.losses.main_ns, run.ended ? 1 : 0);
    }
  }
  for (std::size_t s = 0; s < report.scaling_runs.size(); ++s) {
    if (report.run_of_scaling_run[s]) continue;
    out += job(s, "", "", std::nullopt, nullptr) + std::string(phase_count + 6, ',') + "\n";
  }
  return printable_lines(out);
}

}  // namespace paceline::analysis
