// SPDX-License-Identifier: Apache-2.0
// JSON: the keys of all sections, and the findings.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "analysis/report/render.h"
#include "analysis/report/section.h"
#include "analysis/run/finding_json.h"
#include "analysis/text/labels.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace json_rendering {

Json config_json(const RunConfig& config) {
  Json out = Json::object();
  for (const auto& [key, value] : config) out[key] = value.is_text ? Json(value.text) : Json::parse(value.text);
  return out;
}

Json run_json(const RunAnalysis& run) {
  Json out = {{"path", run.path},
              {"format", run.format},
              {"ranks", run.ranks},
              {"hosts", run.hosts},
              {"span_ns", run.span_ns},
              {"wall_ns", run.wall_ns},
              {"config", config_json(run.config)},
              {"per_rank", Json::array()}};
  if (run.recorded_utc_ns) out["recorded"] = utc_time(*run.recorded_utc_ns);
  for (std::size_t r = 0; r < run.per_rank.size(); ++r) {
    const RankSummary& rank = run.per_rank[r];
    Json& entry =
        out["per_rank"].emplace_back(Json{{"rank", rank.rank}, {"host", rank.host}, {"wall_ns", rank.wall_ns}});
    for (const RunSection& section : run_sections()) {
      if (section.rank_figures != nullptr) section.rank_figures(run, r, entry);
    }
  }
  for (const RunSection& section : run_sections()) {
    if (section.figures != nullptr) section.figures(run, out);
  }
  return out;
}

// JSON has neither infinity nor NaN, and a figure that does not apply is absent: members that hold one, or null, go.
bool is_writable(const Json& value) {
  if (value.is_null()) return false;
  if (value.is_number_float()) return std::isfinite(value.get<double>());
  return !value.is_array() || std::ranges::all_of(value, is_writable);
}

void keep_writable(Json& value) {
  if (value.is_object()) {
    for (auto member = value.begin(); member != value.end();) {
      member = is_writable(*member) ? std::next(member) : value.erase(member);
    }
  }
  if (value.is_structured()) {
    for (Json& member : value) keep_writable(member);
  }
}

}  // namespace json_rendering

Json report_json(const Report& report) {
  Json out = {{"schema", "paceline.report/1"},
              {"headline", report.headline},
              {"verdict", {report.verdict.state, report.verdict.change}},
              {"runs", Json::array()}};
  for (const auto& run : report.runs) out["runs"].push_back(json_rendering::run_json(run));
  if (!report.scaling.points.empty()) {
    Json& scaling = out["scaling"] = Json::object();
    for (const ScalingSection& section : scaling_sections()) {
      if (section.figures != nullptr) section.figures(report, scaling);
    }
  }
  out["findings"] = Json::array();
  for (const auto& finding : report.findings) {
    const auto number = [&](std::size_t rank) { return report.runs[finding.run.value_or(0)].per_rank[rank].rank; };
    Json& entry = out["findings"].emplace_back(finding_json(finding, number));
    if (finding.run) entry["run"] = report.runs[*finding.run].path;
  }
  json_rendering::keep_writable(out);
  return out;
}

std::string render_json(const Report& report) {
  // Names in traces may be any bytes: those that are not UTF-8 are replaced.
  return printable_json(report_json(report).dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace paceline::analysis
