// One trace's figures.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "analysis/metrics/collectives.h"
#include "analysis/metrics/hangs.h"
#include "analysis/metrics/iterations.h"
#include "analysis/metrics/phase_rules.h"
#include "analysis/metrics/statistics.h"
#include "analysis/metrics/stragglers.h"
#include "analysis/report/build.h"
#include "analysis/report/findings.h"
#include "analysis/run/breakdown.h"
#include "analysis/scaling/long_run.h"

namespace paceline::analysis {
namespace {

// `--set KEY=VALUE` gives text; what is a number or a word of JSON is taken as one.
nlohmann::json value_of(const std::string& text) {
  const auto parsed = nlohmann::json::parse(text, nullptr, false);
  return parsed.is_number() || parsed.is_boolean() ? parsed : nlohmann::json(text);
}

template <class Visit>
void visit_marks(const Trace& trace, std::string_view category, Visit&& visit) {
  const NameId wanted = trace.names.find(category);
  if (wanted == 0) return;
  for (const Rank& rank : trace.ranks) {
    for (const Track& track : rank.tracks) {
      for (std::uint32_t i = 0; i < track.marks.size(); ++i) {
        if (trace.kind_of(track.marks, i).category == wanted) visit(rank, track, i);
      }
    }
  }
}

// What the run was: what the program said in its mark `run`, on top of what the user said to the recorder.
nlohmann::json config_of(const Trace& trace) {
  auto config = nlohmann::json::object();
  for (const Rank& rank : trace.ranks) {
    for (const auto& [key, value] : rank.set) config.emplace(key, value_of(value));
  }
  visit_marks(trace, "run", [&](const Rank& rank, const Track& track, std::uint32_t mark) {
    if (&rank != &trace.ranks.front()) return;
    const auto said = nlohmann::json::parse(trace.name_of(track.marks, mark), nullptr, false);
    if (said.is_object()) config.update(said);
  });
  return config;
}

std::vector<AccuracyPoint> accuracy_of(const Trace& trace) {
  std::vector<AccuracyPoint> curve;
  const Rank* source = nullptr;  // the first rank that says any; the others repeat it
  const NameId payload = trace.names.find("payload");
  visit_marks(trace, "accuracy", [&](const Rank& rank, const Track& track, std::uint32_t mark) {
    const auto value = track.marks.number(mark, payload);
    if (!value || (source != nullptr && source != &rank)) return;
    source = &rank;
    curve.push_back({track.marks.start_ns[mark], *value});
  });
  std::stable_sort(curve.begin(), curve.end(), [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  return curve;
}

// Whether any thread of any rank was seen to communicate. MPI that is only started and ended (for the ranks' numbers,
// say) tells nothing of what other libraries sent.
bool saw_communication(const Trace& trace) {
  PhaseTable table(trace);
  for (const Rank& rank : trace.ranks) {
    for (const Track& track : rank.tracks) {
      for (std::size_t i = 0; i < track.slices.size(); ++i) {
        if (table.phase(track.slices.kind[i]) == Phase::communication) return true;
      }
    }
  }
  return false;
}

// The iterations whose number is wrong because earlier ones were lost cannot be put beside other ranks'.
void forget_miscounted(const Rank& rank, std::vector<Iteration>& iterations) {
  const std::vector<LostInterval> losses = main_thread_losses(rank);
  if (losses.empty()) return;
  for (Iteration& iteration : iterations) {
    if (iteration.counted && iteration.start_ns >= losses.front().start_ns) iteration.finished = false;
  }
}

// One value an iteration: the mean over the ranks, where all of them finished it.
IterationReport combine(const std::vector<std::vector<Iteration>>& by_rank,
                        const std::vector<RankReport>& ranks_of_run) {
  struct Sum {
    double ns = 0;
    std::size_t ranks = 0;
  };
  std::map<std::int64_t, Sum> sums;
  std::size_t ranks = 0;
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    const auto& iterations = by_rank[r];
    ranks += !iterations.empty() || ranks_of_run[r].losses.main_thread;
    for (const auto& iteration : iterations) {
      if (!iteration.finished) continue;
      auto& sum = sums[iteration.number];
      sum.ns += static_cast<double>(iteration.duration_ns);
      ++sum.ranks;
    }
  }
  IterationReport report;
  std::vector<std::int64_t> durations;
  for (const auto& [iteration, sum] : sums) {
    if (sum.ranks < ranks) continue;
    const double mean = sum.ns / static_cast<double>(sum.ranks);
    report.seconds.push_back(mean * 1e-9);
    durations.push_back(static_cast<std::int64_t>(mean + 0.5));
  }
  report.count = durations.size();
  report.median_ns = median(durations);
  report.p95_ns = quantile(durations, 0.95);
  report.warmup = report.count < 2 ? 0 : std::max<std::size_t>(1, report.count / 10);
  durations.erase(durations.begin(), durations.begin() + static_cast<std::ptrdiff_t>(report.warmup));
  report.steady_median_ns = median(durations);
  return report;
}

void add_throughput(IterationReport& report, std::optional<double> images_per_iteration) {
  if (!images_per_iteration || report.steady_median_ns <= 0) return;
  report.steady_images_per_s = *images_per_iteration / (1e-9 * static_cast<double>(report.steady_median_ns));
  if (const auto median = median_interval(report.steady()); median && median->low > 0) {
    report.steady_ci95 = Interval{*images_per_iteration / median->high, *images_per_iteration / median->low};
  }
}

LossReport losses_over_ranks(const Trace& trace, const std::vector<RankReport>& ranks,
                             const std::vector<std::vector<Iteration>>& iterations) {
  LossReport report;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankLosses& losses = ranks[r].losses;
    report.events += losses.events;
    report.main_ns += losses.main_ns;
    report.located = report.located && losses.located;
    report.damaged = report.damaged || trace.ranks[r].damaged;
    if (losses.main_thread) {
      report.ranks.push_back(ranks[r].rank);
    } else if (losses.other_threads) {
      report.helper_ranks.push_back(ranks[r].rank);
    }
    for (const auto& cause : losses.causes) {
      if (std::ranges::find(report.causes, cause) == report.causes.end()) report.causes.push_back(cause);
    }
    const auto touched = touched_iterations(trace.ranks[r], iterations[r]);
    report.iterations.insert(report.iterations.end(), touched.begin(), touched.end());
  }
  std::ranges::sort(report.iterations);
  report.iterations.erase(std::unique(report.iterations.begin(), report.iterations.end()), report.iterations.end());
  return report;
}

// Of a run that did not end, and of one whose iterations are not all known, `--set images` says what was planned.
std::optional<double> images_of(const RunReport& run) {
  const auto planned = run.number("images"), per_iteration = run.number("images_per_iteration");
  if (run.ended && !run.losses.damaged && planned) return planned;
  if (run.refused() || !per_iteration || run.iterations.count == 0) return std::nullopt;
  return *per_iteration * static_cast<double>(run.iterations.count);
}

void add_collectives(const Trace& trace, const std::vector<std::vector<Iteration>>& iterations, RunReport& run) {
  const Collectives collectives = match_collectives(trace);
  run.unmatched_calls = collectives.unmatched_calls;
  for (const auto& row : collectives.rows) {
    run.collectives.push_back({trace.names[row.operation], row.bytes, row.count, row.members, row.timed, row.wait_ns,
                               row.transfer_ns, row.busbw_bytes_per_s});
  }
  for (const auto& straggler : stragglers_of(trace, collectives)) {
    auto& rank = run.per_rank[straggler.rank];
    rank.last_count = straggler.last_count;
    rank.caused_ns = straggler.caused_ns;
    rank.waited_ns = straggler.waited_ns;
  }
  if (run.losses.located) run.lateness = test_lateness(lateness_of(trace, collectives, iterations), run.clock_error_ns);
}

std::optional<double> mean_cpu_waiting_share(const Trace& trace) {
  double sum = 0;
  std::size_t counted = 0;
  for (const Rank& rank : trace.ranks) {
    if (const auto share = cpu_waiting_share(rank)) sum += *share, ++counted;
  }
  if (counted == 0) return std::nullopt;
  return sum / static_cast<double>(counted);
}

}  // namespace

std::optional<double> RunReport::number(const char* key) const {
  const auto found = config.find(key);
  if (found == config.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

RunReport report_run(const Trace& trace, const std::string& path) {
  RunReport run;
  run.path = path;
  const std::filesystem::path named = std::filesystem::path(path).lexically_normal();
  run.name = named.has_filename() ? named.filename().string() : named.parent_path().filename().string();
  if (run.name.empty() || run.name == ".") run.name = path;
  run.ranks = static_cast<int>(trace.ranks.size());
  for (const Rank& rank : trace.ranks) run.ranks = std::max(run.ranks, rank.world_size);
  run.span_ns = trace.span_ns();
  run.config = config_of(trace);

  std::vector<std::vector<Iteration>> iterations;
  std::uint64_t communication_events = 0;
  constexpr auto communication = static_cast<std::size_t>(Phase::communication);
  for (const Rank& rank : trace.ranks) {
    if (run.format.empty()) run.format = rank.format;
    if (std::find(run.hosts.begin(), run.hosts.end(), rank.host) == run.hosts.end()) run.hosts.push_back(rank.host);
    const RankPhases phases = phases_of(trace, rank);
    iterations.push_back(iterations_of(trace, rank, phases));
    RankReport out;
    out.rank = rank.rank;
    out.host = rank.host;
    out.wall_ns = rank.recorded_ns();
    out.span_ns = rank.end_ns - rank.start_ns;
    for (const Gap& gap : rank.gaps) {
      if (!gap.lost) out.gaps.push_back(gap.reason);
    }
    out.losses = losses_of(rank);
    out.phase_ns = phases.total_ns;
    out.overlap = overlap_of(trace, rank, phases);
    out.gpu = gpu_usage(gpu_activity(trace, rank));
    run.wall_ns = std::max(run.wall_ns, out.wall_ns);
    communication_events += rank.nccl_events;
    for (const auto& [cause, lost] : rank.dropped) {
      run.dropped += lost;
      run.dropped_by_cause[cause] += lost;
    }
    run.ended = run.ended && rank.ended;
    if (rank.damaged) run.damage.push_back(rank.path + ": " + rank.damage);
    run.clock_error_ns = std::max(run.clock_error_ns, rank.clock_error_ns);
    run.per_rank.push_back(std::move(out));
  }
  run.losses = losses_over_ranks(trace, run.per_rank, iterations);
  if (trace.ranks.size() > 1) {
    for (std::size_t r = 0; r < trace.ranks.size(); ++r) forget_miscounted(trace.ranks[r], iterations[r]);
  }
  add_collectives(trace, iterations, run);
  for (const Hang& hang : find_hangs(trace)) run.hangs.push_back(hang_text(trace, hang));
  run.sudden_ends = sudden_ends_text(trace);
  run.machine_findings = machine_findings(trace);
  run.waiting_for_cpu = mean_cpu_waiting_share(trace);
  run.communication_observed = run.ranks == 1 || communication_events > 0 || saw_communication(trace);

  run.accuracy_curve = accuracy_of(trace);
  if (const auto target = run.number("target_accuracy")) run.target_accuracy = *target;
  for (const auto& point : run.accuracy_curve) {
    run.accuracy = point.accuracy;
    run.best_accuracy = std::max(run.best_accuracy.value_or(0), point.accuracy);
    if (!run.seconds_to_accuracy && point.accuracy >= run.target_accuracy) {
      run.seconds_to_accuracy = 1e-9 * static_cast<double>(point.time_ns);
    }
  }

  if (run.losses.located) run.iterations = combine(iterations, run.per_rank);
  run.images = images_of(run);
  add_throughput(run.iterations, run.number("images_per_iteration"));

  std::int64_t step_ns = 0, step_communication_ns = 0, training_ns = 0;
  for (const auto& of_rank : iterations) {
    for (const auto& iteration : of_rank) {
      if (iteration.lost || !run.losses.located) continue;
      step_ns += iteration.duration_ns;
      step_communication_ns += iteration.phase_ns[communication];
    }
  }
  for (const auto& rank : run.per_rank) {
    for (const Phase phase : {Phase::forward, Phase::backward, Phase::optimizer}) {
      training_ns += rank.phase_ns[static_cast<std::size_t>(phase)];
    }
  }
  if (step_ns > 0 && run.ranks > 1 && run.communication_observed) {
    run.communication_share_of_step = static_cast<double>(step_communication_ns) / static_cast<double>(step_ns);
  }
  if ((step_ns > 0 || training_ns > 0) && !run.refused()) {
    const BreakdownRules rules{run.ranks, run.config.value("evaluate", nlohmann::json()) == "all ranks", false};
    run.breakdown = break_down(run.per_rank, iterations, rules);
    classify(*run.breakdown, rules, run.iterations.steady());
  }
  return run;
}

}  // namespace paceline::analysis
