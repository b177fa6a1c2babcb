// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/rank_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/statistics/counters.h"
#include "analysis/text/lists.h"
#include "analysis/text/numbers.h"
#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"
#include "profiler/format/liveness.h"
#include "profiler/format/reader.h"

namespace paceline::analysis {
namespace rank_summary_parts {

// Calls visit(track, mark) for each mark of the category.
template <class Visit>
void visit_marks(const Trace& trace, const Rank& rank, std::string_view category, Visit&& visit) {
  const NameId wanted = trace.names.find(category);
  if (wanted == 0) return;
  for (const Track& track : rank.tracks) {
    for (std::uint32_t i = 0; i < track.marks.size(); ++i) {
      if (trace.kind_of(track.marks, i).category == wanted) visit(track, i);
    }
  }
}

void add_marks(const Trace& trace, const Rank& rank, RankSummary& summary) {
  visit_marks(trace, rank, "run", [&](const Track& track, std::uint32_t mark) {
    summary.descriptions.push_back(trace.name_of(track.marks, mark));
  });
  const NameId payload = trace.names.find("payload");
  visit_marks(trace, rank, "accuracy", [&](const Track& track, std::uint32_t mark) {
    const auto value = track.marks.number(mark, payload);
    if (value) summary.accuracies.push_back({track.marks.start_ns[mark], *value});
  });
  visit_marks(trace, rank, "unobserved", [&](const Track& track, std::uint32_t mark) {
    summary.unobserved += static_cast<std::uint64_t>(std::max(track.marks.number(mark, payload).value_or(0), 0.0));
  });
  std::ranges::stable_sort(summary.accuracies, {}, &AccuracyPoint::time_ns);
}

// Whether any thread communicated. MPI that was only started and ended (to number the ranks, say) shows nothing of what
// other libraries sent.
bool saw_communication(const PhaseTable& table, const Rank& rank) {
  if (rank.nccl_events > 0) return true;
  for (const Track& track : rank.tracks) {
    for (std::size_t i = 0; i < track.slices.size(); ++i) {
      if (table.phase(track.slices.kind[i]) == Phase::communication) return true;
    }
  }
  return false;
}

std::optional<double> waiting_for_cpu(const Rank& rank) {
  const Samples* waiting = find_counter(rank, "waiting for a CPU", "main thread");
  if (waiting == nullptr || waiting->size() < 2) return std::nullopt;
  const std::int64_t ns = waiting->time_ns.back() - waiting->time_ns.front();
  if (ns <= 0) return std::nullopt;
  return std::max(waiting->value.back() - waiting->value.front(), 0.0) * 1e3 / static_cast<double>(ns);
}

// The rise of a counter of the control group; nothing if it is not in the trace.
std::optional<double> rise_of(const Rank& rank, std::string_view counter) {
  const Samples* samples = find_counter(rank, counter, "cgroup");
  if (samples == nullptr || samples->size() == 0) return std::nullopt;
  return std::max(samples->value.back() - samples->value.front(), 0.0);
}

std::optional<CgroupUse> cgroup_use(const Rank& rank) {
  const auto periods = rise_of(rank, "CPU limit, periods"), kills = rise_of(rank, "memory limit, OOM kills");
  if (!periods && !kills) return std::nullopt;
  return CgroupUse{.periods = periods.value_or(0),
                   .throttled_periods = rise_of(rank, "CPU limit, throttled periods").value_or(0),
                   .throttled_s = 1e-6 * rise_of(rank, "CPU limit, throttled time").value_or(0),
                   .oom_kills = kills.value_or(0),
                   .memory_hits = rise_of(rank, "memory limit, hits").value_or(0),
                   .memory_reclaims = rise_of(rank, "memory limit, throttled above high").value_or(0)};
}

// The bits of NVML's nvmlClocksEventReasons by which the hardware protects itself. A power cap in software is normal at
// full load.
constexpr std::uint64_t slowdown_bits = 0x8 | 0x20 | 0x40 | 0x80;

std::vector<GpuTrouble> gpu_troubles(const Rank& rank) {
  std::vector<GpuTrouble> troubles;
  for (const Track& track : rank.tracks) {
    const Samples& samples = track.samples;
    if (track.kind != TrackKind::counter || samples.size() == 0) continue;
    if (samples.name == "XID error") {
      troubles.push_back({samples.device, samples.value.front(), samples.size() - 1});
    } else if (samples.name == "throttle reasons") {
      const auto slow = std::ranges::count_if(samples.value, [](double bits) {
        return bits >= 0 && bits < 0x1p53 && (static_cast<std::uint64_t>(bits) & slowdown_bits) != 0;
      });
      if (slow == 0) continue;
      troubles.push_back(
          {samples.device, std::nullopt, 0, static_cast<double>(slow) / static_cast<double>(samples.size())});
    }
  }
  return troubles;
}

RankSummary identity_of(const Rank& rank) {
  RankSummary summary{.rank = rank.rank,
                      .world_size = rank.world_size,
                      .path = rank.path,
                      .format = rank.format,
                      .host = rank.host,
                      .boot_id = rank.boot_id,
                      .start_ns = rank.start_ns,
                      .end_ns = rank.end_ns,
                      .wall_ns = rank.recorded_ns(),
                      .span_ns = rank.end_ns - rank.start_ns,
                      .ended = rank.ended,
                      .damaged = rank.damaged,
                      .damage = rank.damage,
                      .clock_source = rank.clock_source,
                      .clock_error_ns = rank.clock_error_ns,
                      .utc_of_zero_ns = rank.utc_of_zero_ns,
                      .set = rank.set,
                      .facts = rank.facts,
                      .dropped = rank.dropped};
  for (const Gap& gap : rank.gaps) {
    if (!gap.lost) summary.pauses.push_back(gap.reason);
  }
  return summary;
}

RankSummary summary_of(const RunIndex& index, std::size_t r) {
  const Trace& trace = index.trace();
  const Rank& rank = trace.ranks[r];
  const RankTimes& times = index.times(r);
  RankSummary summary = identity_of(rank);
  summary.iterations = times.iterations;
  summary.interludes = times.interludes;
  summary.phase_ns = times.phase_ns;
  summary.exchanges = times.exchanges;
  summary.overlap = times.overlap;
  summary.gpu = times.gpu;
  summary.losses = losses_of(rank);
  if (const auto losses = main_thread_losses(rank); !losses.empty()) {
    summary.first_loss = {losses.front().start_ns, losses.front().end_ns};
  }
  summary.touched_iterations = touched_iterations(rank, summary.iterations);
  summary.communicated = saw_communication(index.phases(), rank);
  std::optional<Correlations> correlations;
  if (summary.gpu) {
    correlations.emplace(trace, rank);
    summary.gpu_kernels = gpu_kernels(trace, rank);
    summary.launches = launches_of(rank, *correlations);
    summary.stream_idle = stream_idle(rank, *correlations);
  }
  summary.ranges = range_statistics(trace, rank, correlations ? &*correlations : nullptr);
  summary.layers = layer_costs(index.phases(), rank, summary.iterations, correlations ? &*correlations : nullptr);
  add_marks(trace, rank, summary);
  summary.waiting_for_cpu = waiting_for_cpu(rank);
  summary.gpu_troubles = gpu_troubles(rank);
  summary.cgroup = cgroup_use(rank);
  summary.stage = stage_times(trace, rank, summary.iterations);
  return summary;
}

}  // namespace rank_summary_parts

std::vector<RankSummary> summaries_of(const RunIndex& index) {
  std::vector<RankSummary> summaries(index.trace().ranks.size());
  parallel_for(summaries.size(), [&](std::size_t r) { summaries[r] = rank_summary_parts::summary_of(index, r); });
  return summaries;
}

std::vector<RankSummary> summarise(const Trace& trace) {
  RunIndex index(trace);
  std::vector<RankSummary> summaries = summaries_of(index);
  std::vector<CollectiveCalls> calls = index.take_calls();
  for (std::size_t r = 0; r < calls.size(); ++r) summaries[r].collective_calls = std::move(calls[r]);
  return summaries;
}

std::vector<RankSummary> identities(const Trace& trace) {
  std::vector<RankSummary> ranks;
  for (const Rank& rank : trace.ranks) ranks.push_back(rank_summary_parts::identity_of(rank));
  return ranks;
}

std::string failure_of(const RankSummary& rank) {
  const auto found = rank.facts.find("exit_status");
  return rank.ended && found != rank.facts.end() ? found->second : "";
}

namespace {

// "Rank 1 ended with status 2." The first ranks' status stands for those of all.
std::string failures_text(std::span<const RankSummary> ranks) {
  std::vector<int> failed;
  std::string status;
  for (const RankSummary& rank : ranks) {
    const std::string of_rank = failure_of(rank);
    if (of_rank.empty() || (!status.empty() && of_rank != status)) continue;
    status = of_rank;
    failed.push_back(rank.rank);
  }
  if (failed.empty()) return "";
  return fmt::format("{} ended with status {}, which means that the program failed.", capitalised(rank_list(failed)),
                     status);
}

// True if the rank's process certainly runs. Costs one read of the header, for a file that is not closed.
bool still_runs(const RankSummary& rank) {
  if (rank.format != "pace") return false;
  try {
    return format::liveness_of(format::read_trace_header(rank.path)) == format::Liveness::lives;
  } catch (const Error&) {  // the file was removed meanwhile, or lies elsewhere
    return false;
  }
}

}  // namespace

std::string sudden_ends_text(std::span<const RankSummary> ranks) {
  std::vector<int> sudden, running;
  const RankSummary* first = nullptr;
  for (const RankSummary& rank : ranks) {
    if (rank.ended) continue;
    if (still_runs(rank)) {
      running.push_back(rank.rank);
      continue;
    }
    sudden.push_back(rank.rank);
    if (first == nullptr || rank.end_ns < first->end_ns) first = &rank;
  }
  if (first == nullptr && !running.empty()) {
    return fmt::format("{} still {}: the figures cover what is recorded so far.", capitalised(rank_list(running)),
                       running.size() == 1 ? "runs" : "run");
  }
  if (first == nullptr) return failures_text(ranks);
  const std::string who = capitalised(rank_list(sudden)), last_event = point_in_time(first->end_ns);
  if (sudden.size() == 1) {
    return fmt::format(
        "{} did not end by itself (a signal ended it, it crashed, or it still runs): its last event is at {}.", who,
        last_event);
  }
  return fmt::format(
      "{} did not end by themselves (signals ended them, they crashed, or they still run): the earliest last event is "
      "rank {}'s, at {}.",
      who, first->rank, last_event);
}

}  // namespace paceline::analysis
