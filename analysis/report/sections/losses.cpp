// SPDX-License-Identifier: Apache-2.0
// What a trace does not cover (pauses, lost events, damage, missing ranks), and which figures that refuses.
#include <algorithm>

#include "analysis/report/sections.h"
#include "analysis/report/values.h"
#include "analysis/text/lists.h"

namespace paceline::analysis {
namespace losses_section {

void add_coverage(const RunAnalysis& run, std::vector<Finding>& out) {
  double recorded = 0, span = 0;  // a rank's may be as long as an integer can hold
  std::vector<std::string> reasons;
  for (const auto& rank : run.per_rank) {
    recorded += static_cast<double>(rank.wall_ns);
    span += static_cast<double>(rank.span_ns);
    for (const std::string& reason : rank.pauses) {
      if (std::ranges::find(reasons, reason) == reasons.end()) reasons.push_back(reason);
    }
  }
  if (reasons.empty()) return;
  const auto mean = [&](double sum) {
    return duration(static_cast<std::int64_t>(sum / static_cast<double>(run.per_rank.size())));
  };
  out.push_back({Severity::info,
                 fmt::format("On average, {} ({}) of the {} that a rank ran were recorded, and the figures cover only "
                             "that part. The rest was not recorded: {}.",
                             mean(recorded), percent(span > 0 ? recorded / span : 0), mean(span), list_text(reasons))});
}

bool has_cause(const RunLosses& losses, const char* cause) {
  return std::ranges::find(losses.causes, cause) != losses.causes.end();
}

std::string causes_text(const RunLosses& losses) {
  if (has_cause(losses, "disk")) return " because the file could not be written";
  if (has_cause(losses, "no_free_chunk")) return " because the buffers were full";
  return has_cause(losses, "interrupted") ? " because signal handlers emitted them while the recorder was busy" : "";
}

std::string remedy_text(const RunLosses& losses) {
  if (has_cause(losses, "disk")) return " Free space on the disk, or record to another one (-o).";
  if (!has_cause(losses, "no_free_chunk")) return "";
  return " Record again with a larger --buffer, or with --lossless, which makes threads wait for free buffers.";
}

std::string events_text(const RunLosses& losses) {
  return losses.events == 0 ? "Events" : plural(losses.events, "event", "events");
}

std::string iterations_text(const std::vector<std::int64_t>& iterations) {
  return iterations.size() == 1 ? fmt::format("Iteration {} is affected and left out.", iterations[0])
                                : fmt::format("Iterations {} are affected and left out.", number_list(iterations));
}

// A run that is only damaged has its own finding, which names the file.
void add_losses(const RunAnalysis& run, std::vector<Finding>& out) {
  const RunLosses& losses = run.losses;
  const bool only_damaged = losses.events == 0 && losses.main_ns == 0 && losses.iterations.empty() && losses.damaged;
  if (!losses.any() || only_damaged) return;
  if (losses.ranks.empty()) {
    out.push_back(
        {Severity::warning,
         fmt::format("{} of helper threads of {} were lost{}. The main threads are complete, so phases, "
                     "iterations and the breakdown are valid. The work of the helper threads is incomplete.{}",
                     events_text(losses), rank_list(losses.helper_ranks), causes_text(losses), remedy_text(losses))});
    return;
  }
  std::string text =
      fmt::format("{} were lost on {}{}.", events_text(losses), rank_list(losses.ranks), causes_text(losses));
  if (!losses.helper_ranks.empty()) {
    text += fmt::format(" On {}, only helper threads lost events.", rank_list(losses.helper_ranks));
  }
  if (!losses.located) {
    text += " The file does not record when, so any range may be absent or too long, and iterations are left out.";
  } else {
    if (losses.main_ns > 0) {
      text += fmt::format(" They concern {} of the main threads, and that time belongs to no phase.",
                          duration(losses.main_ns));
    }
    if (!losses.iterations.empty()) text += " " + iterations_text(losses.iterations);
  }
  text += " The breakdown, the serial share and speed-ups depend on the lost events, so the report refuses them.";
  out.push_back({Severity::problem, text + remedy_text(losses)});
}

// Other counts of the recorder: events that are incomplete, and lost ones that begin and end no range.
void add_drops(const RunAnalysis& run, std::vector<Finding>& out) {
  const auto say = [&](const char* cause, const char* one, const char* many, const char* rest) {
    const auto found = run.dropped_by_cause.find(cause);
    if (found == run.dropped_by_cause.end() || found->second == 0) return;
    out.push_back({Severity::warning, plural(found->second, one, many) + rest});
  };
  say("too_long", "event was", "events were", " too long to be recorded and left out.");
  say("too_many_names", "event has", "events have",
      " no name, because the program uses more different names than the recorder keeps. Their times are right.");
  say("payload_cut", "event lacks", "events lack", " a part of the NVTX payload.");
  say("device", "CUDA record was", "CUDA records were",
      " lost because CUPTI had no buffer. The recorded work of the GPU is incomplete.");
  say("ring", "event was", "events were",
      " overwritten before the time of the flight recorder was over. Record with a larger --buffer.");
}

// Where the first rank whose main thread lost events, or whose file is damaged, begins to be incomplete.
std::vector<FindingPlace> place_of_losses(const RunAnalysis& run) {
  const auto rank = std::ranges::find_if(run.per_rank, [](const RankSummary& of) { return of.losses.main_thread; });
  if (rank == run.per_rank.end()) return {};
  return {{.rank = static_cast<std::size_t>(rank - run.per_rank.begin()), .time = rank->first_loss}};
}

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  const std::size_t first = out.size();
  add_coverage(run, out);
  add_losses(run, out);
  add_drops(run, out);
  for (const std::string& damage : run.damage) {
    out.push_back({Severity::problem,
                   fmt::format("The trace is damaged ({}). The figures cover the part that could be read. The report "
                               "refuses the breakdown and leaves the run out of the scaling section.",
                               damage)});
  }
  if (static_cast<int>(run.per_rank.size()) < run.ranks) {
    out.push_back({Severity::problem,
                   fmt::format("Only {} of {} ranks {} a trace here. Collect the files of the other ranks in the same "
                               "directory.",
                               run.per_rank.size(), run.ranks, run.per_rank.size() == 1 ? "has" : "have")});
  }
  for (Finding& finding : std::span(out).subspan(first)) {
    if (finding.severity != Severity::info) finding.places = place_of_losses(run);
  }
}

void figures(const RunAnalysis& run, Json& out) {
  if (run.dropped > 0) out["dropped"] = run.dropped;
  if (!run.dropped_by_cause.empty()) out["dropped_by_cause"] = run.dropped_by_cause;
  if (run.losses.any()) {
    const RunLosses& losses = run.losses;
    Json& lost = out["lost"] = {{"events", losses.events},
                                {"ranks", losses.ranks},
                                {"helper_ranks", losses.helper_ranks},
                                {"main_thread_ns", losses.main_ns},
                                {"located", losses.located},
                                {"iterations_left_out", losses.iterations.size()}};
    if (!losses.causes.empty()) lost["causes"] = losses.causes;
    if (!losses.iterations.empty()) lost["iterations"] = number_list(losses.iterations);
  }
  if (run.refused()) out["refused"] = {"breakdown", "serial_share", "scaling"};
  if (!run.damage.empty()) out["damaged"] = run.damage;
}

void rank_figures(const RunAnalysis& run, std::size_t r, Json& out) {
  const RankSummary& rank = run.per_rank[r];
  if (rank.span_ns != rank.wall_ns) out["span_ns"] = rank.span_ns;
  if (rank.losses.events > 0) out["lost_events"] = rank.losses.events;
  if (rank.losses.main_ns > 0) out["lost_ns"] = rank.losses.main_ns;
}

}  // namespace losses_section

RunSection sections::losses() {
  using namespace losses_section;
  return {.findings = findings, .figures = figures, .rank_figures = rank_figures};
}

}  // namespace paceline::analysis
