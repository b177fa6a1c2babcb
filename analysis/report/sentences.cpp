// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/sentences.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "analysis/report/values.h"
#include "analysis/text/lists.h"

namespace paceline::analysis {

void SentenceList::say(const char* kind, Severity severity, std::string text, std::optional<double> cost_s) {
  if (!texts_.insert(text).second) return;  // several configurations can give the same sentence
  if (++said_[kind] > most_sentences) {
    ++left_out_;
    return;
  }
  out_.push_back({.severity = severity, .text = std::move(text), .cost_s = cost_s, .kind = kind});
}

void SentenceList::finish() {
  if (left_out_ == 0) return;
  out_.push_back(
      {Severity::info, fmt::format("{} of the kinds above {} left out here. --format json has all figures.",
                                   plural(left_out_, "sentence", "sentences"), left_out_ == 1 ? "is" : "are")});
}

std::string on_host(const RankSummary& rank) { return rank.host.empty() ? "" : " on " + rank.host; }

std::string ranks_text(const RunAnalysis& run) {
  const std::string all = plural(static_cast<std::size_t>(run.ranks), "rank", "ranks");
  const std::size_t given = run.per_rank.size();
  return given == 0 || given >= static_cast<std::size_t>(run.ranks) ? all : fmt::format("{} of {}", given, all);
}

std::string run_summary(const RunAnalysis& run) {
  std::vector<std::string> parts;
  const auto from_config = [&](const char* key, const char* before = "", const char* after = "") {
    const auto found = run.config.find(key);
    if (found == run.config.end()) return;
    parts.push_back(before + found->second.text + after);
  };
  from_config("program");
  from_config("model");
  parts.push_back(ranks_text(run) + (run.hosts.empty() ? "" : " on " + list_text(run.hosts)));
  if (run.unequal_batches.empty()) {
    from_config("batch_per_rank", "batch ", " per rank");
  } else {
    const auto [least, most] = std::ranges::minmax(run.unequal_batches, {}, &RankBatch::batch);
    parts.push_back(fmt::format("batch {} to {} per rank", count(least.batch), count(most.batch)));
  }
  from_config("dtype");
  from_config("communicator", "communicator ");
  return joined(parts);
}

std::optional<double> mean_cpu_waiting(const Report& report, const std::vector<std::size_t>& runs) {
  double sum = 0, counted = 0;
  for (const std::size_t r : runs) {
    if (const auto& waiting = report.runs[r].waiting_for_cpu) sum += *waiting, ++counted;
  }
  return counted > 0 ? std::optional(sum / counted) : std::nullopt;
}

std::optional<double> mean_cpu_waiting(const Report& report, const ScalingPoint& point) {
  std::vector<std::size_t> runs;
  for (const std::size_t r : point.runs) {
    if (const auto& run = report.run_of_scaling_run[r]) runs.push_back(*run);
  }
  return mean_cpu_waiting(report, runs);
}

bool baseline_lacked_cpus(const Report& report, const ScalingPoint& many) {
  const auto one = mean_cpu_waiting(report, report.scaling.points[*many.baseline]);
  return one && *one >= much_cpu_waiting && *one >= mean_cpu_waiting(report, many).value_or(0) + much_cpu_waiting / 2;
}

std::string differences_text(const std::vector<Difference>& differences) {
  std::vector<std::string> parts;
  const auto named = [](const std::string& value) { return value.empty() ? "not given" : value; };
  for (const auto& d : differences) parts.push_back(fmt::format("{}: {} → {}", d.column, named(d.from), named(d.to)));
  return joined(parts, "; ");
}

std::string work_text(const ScalingPoint& point) {
  if (point.epochs > 0) return fmt::format("{} {}", count(point.epochs), point.epochs == 1 ? "epoch" : "epochs");
  return count(point.images) + " images";
}

std::string rank_counts_text(const Scaling& scaling, const std::vector<std::size_t>& points) {
  constexpr std::size_t most_named = 12;
  std::set<int> ranks;
  for (const std::size_t p : points) ranks.insert(scaling.points[p].ranks);
  std::vector<std::string> names;
  for (const int n : ranks) {
    if (names.size() == most_named) {
      names.push_back(fmt::format("{} more numbers of", ranks.size() - most_named));
      break;
    }
    names.push_back(std::to_string(n));
  }
  return list_text(names);
}

Json rank_counts_json(const Scaling& scaling, const std::vector<std::size_t>& points) {
  Json out = Json::array();
  for (const std::size_t p : points) out.push_back(scaling.points[p].ranks);
  return out;
}

Json differences_json(const std::vector<Difference>& differences) {
  Json out = Json::array();
  for (const auto& d : differences) out.push_back({{"column", d.column}, {"from", d.from}, {"to", d.to}});
  return out;
}

void set_verdict(Json& object, Verdict verdict) {
  if (verdict == Verdict::unknown) return;
  object["verdict"] = verdict == Verdict::faster ? "faster" : verdict == Verdict::slower ? "slower" : "undecided";
}

std::string point_label(const Report& report, const ScalingPoint& point) {
  const std::size_t first = point.runs.front();
  const RunAnalysis* run = report.trace_of(first);
  const std::string label =
      run != nullptr ? run->name : std::filesystem::path(report.scaling_runs[first].label).filename().string();
  return point.runs.size() > 1 ? fmt::format("{} and {} more", label, point.runs.size() - 1) : label;
}

}  // namespace paceline::analysis
