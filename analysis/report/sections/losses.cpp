// What a trace does not cover, and what that makes of its figures.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/report/findings.h"
#include "analysis/report/shares.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace {

void add_coverage_finding(const RunReport& run, std::vector<Finding>& out) {
  std::int64_t recorded = 0, span = 0;
  std::vector<std::string> reasons;
  for (const auto& rank : run.per_rank) {
    recorded += rank.wall_ns;
    span += rank.span_ns;
    for (const std::string& reason : rank.gaps) {
      if (std::ranges::find(reasons, reason) == reasons.end()) reasons.push_back(reason);
    }
  }
  if (reasons.empty()) return;
  const auto ranks = static_cast<std::int64_t>(run.per_rank.size());
  out.push_back({Severity::info,
                 fmt::format("Of {} that a rank ran, on average, {} ({}) were recorded: figures cover that part. The "
                             "rest: {}.",
                             duration(span / ranks), duration(recorded / ranks), percent(share(recorded, span)),
                             list_text(reasons))});
}

bool has_cause(const LossReport& losses, const char* cause) {
  return std::ranges::find(losses.causes, cause) != losses.causes.end();
}

std::string loss_causes(const LossReport& losses) {
  if (has_cause(losses, "disk")) return " because the file could not be written";
  return has_cause(losses, "no_free_chunk") ? " because the buffers were full" : "";
}

std::string loss_remedy(const LossReport& losses) {
  if (has_cause(losses, "disk")) return " Free space on the disk, or record to another one (-o).";
  if (!has_cause(losses, "no_free_chunk")) return "";
  return " Record again with a larger --buffer, or with --lossless, where a thread that finds no room waits.";
}

std::string lost_events(const LossReport& losses) {
  if (losses.events == 0) return "Events";
  return plural(losses.events, "event", "events");
}

// A run that is only damaged has its own finding, which names the file.
void add_loss_finding(const RunReport& run, std::vector<Finding>& out) {
  const LossReport& losses = run.losses;
  const bool only_damaged = losses.events == 0 && losses.main_ns == 0 && losses.iterations.empty() && losses.damaged;
  if (!losses.any() || only_damaged) return;
  if (losses.ranks.empty()) {
    out.push_back(
        {Severity::warning,
         fmt::format("{} of helper threads of {} were lost{}. The main threads are whole, so phases, iterations "
                     "and the breakdown stand; what the helper threads did is not complete.{}",
                     lost_events(losses), rank_list(losses.helper_ranks), loss_causes(losses), loss_remedy(losses))});
    return;
  }
  std::string text =
      fmt::format("{} were lost on {}{}.", lost_events(losses), rank_list(losses.ranks), loss_causes(losses));
  if (!losses.helper_ranks.empty()) {
    text += fmt::format(" Of {} only helper threads lost some.", rank_list(losses.helper_ranks));
  }
  if (!losses.located) {
    text += " The file does not say when, so that any range may be absent or too long: iterations are left out.";
  } else {
    if (losses.main_ns > 0) {
      text += fmt::format(" That is {} of the main threads, which belong to no phase.", duration(losses.main_ns));
    }
    if (!losses.iterations.empty()) {
      text += fmt::format(" {} {} touched and left out.", losses.iterations.size() == 1 ? "Iteration" : "Iterations",
                          number_list(losses.iterations) + (losses.iterations.size() == 1 ? " is" : " are"));
    }
  }
  text += " The breakdown, the serial share and speed-ups would rest on what is missing and are refused.";
  out.push_back({Severity::problem, text + loss_remedy(losses)});
}

// What else the recorder counted: events that are there but not complete, and those that begin and end no range.
void add_drop_findings(const RunReport& run, std::vector<Finding>& out) {
  const auto say = [&](const char* cause, const char* one, const char* many, const char* what) {
    const auto found = run.dropped_by_cause.find(cause);
    if (found == run.dropped_by_cause.end() || found->second == 0) return;
    out.push_back({Severity::warning, plural(found->second, one, many) + what});
  };
  say("too_long", "event was", "events were", " too long to be recorded and left out.");
  say("too_many_names", "event has", "events have",
      " no name: the program uses more different names than the recorder keeps. Their times are right.");
  say("payload_cut", "event lacks", "events lack", " a part of the NVTX payload.");
  say("device", "CUDA record was", "CUDA records were",
      " lost because CUPTI had no buffer: the work of the GPU is not complete.");
  say("ring", "event was", "events were",
      " overwritten before the flight recorder's time was over: record with a larger --buffer.");
}

void add_end_finding(const RunReport& run, std::vector<Finding>& out) {
  if (run.sudden_ends.empty()) return;
  std::string text = run.sudden_ends + " The run is left out of the scaling section";
  if (run.iterations.count > 0) {
    text += run.images
                ? fmt::format("; its images are those of the {} that all ranks finished",
                              plural(run.iterations.count, "iteration", "iterations"))
                : fmt::format("; all ranks finished {}", plural(run.iterations.count, "iteration", "iterations"));
  }
  out.push_back({Severity::problem, text + "."});
}

}  // namespace

void add_quality_findings(const RunReport& run, std::vector<Finding>& out) {
  for (const std::string& hang : run.hangs) out.push_back({Severity::problem, hang});
  add_end_finding(run, out);
  add_coverage_finding(run, out);
  add_loss_finding(run, out);
  add_drop_findings(run, out);
  for (const auto& damage : run.damage) {
    out.push_back({Severity::problem, fmt::format("The trace is damaged ({}): figures cover what was read. The "
                                                  "breakdown is refused, and the run is left out of the scaling "
                                                  "section.",
                                                  damage)});
  }
  if (static_cast<int>(run.per_rank.size()) < run.ranks) {
    out.push_back({Severity::problem,
                   fmt::format("Only {} of {} ranks have a trace here: collect the other ranks' files into the same "
                               "directory.",
                               run.per_rank.size(), run.ranks)});
  }
  if (!run.communication_observed) {
    out.push_back(
        {Severity::warning,
         "Communication was not observed: no source saw any, so it is part of other phases here. The "
         "recorder sees MPI and NVTX ranges; put a range named \"allreduce\" around other libraries' calls."});
  }
  if (run.unmatched_calls > 0 && run.ranks > 1) {
    out.push_back(
        {Severity::warning, fmt::format("{} found no partner on other ranks and {} left out of waits and transfers.",
                                        plural(run.unmatched_calls, "collective call", "collective calls"),
                                        run.unmatched_calls == 1 ? "is" : "are")});
  }
  std::uint64_t enqueued = 0;
  for (const auto& row : run.collectives) {
    if (row.operation.starts_with("nccl")) enqueued += row.count - row.timed;
  }
  if (enqueued > 0) {
    out.push_back(
        {Severity::warning,
         fmt::format("When {} ran is not known, only when they were enqueued, so their waits and transfers are "
                     "not either: record CUDA as well, or with --nccl-kernel-channels.",
                     plural(enqueued, "collective of NCCL", "collectives of NCCL"))});
  }
  if (run.iterations.count == 0 && !run.refused()) {
    out.push_back({Severity::warning,
                   "No iterations were seen: put an NVTX range named \"iteration\" around a "
                   "training step to have steps, throughput and what would shrink with ranks."});
  } else if (!run.images && run.can_be_compared()) {
    out.push_back({Severity::warning,
                   "The number of images is not known: record with `--set images_per_iteration=N` "
                   "to have images/s and speed-ups."});
  }
  const OfWall other = phase_of_wall(run, Phase::other);
  if (run.iterations.count > 0 && other.share() > 0.02) {
    out.push_back(
        {Severity::warning,
         fmt::format("{} of the time ({}) belong to no phase: NVTX ranges around that code would name them.",
                     percent(other.share()), duration(other.ns / static_cast<std::int64_t>(run.per_rank.size())))});
  }
}

}  // namespace paceline::analysis
