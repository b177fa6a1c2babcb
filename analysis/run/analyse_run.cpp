// SPDX-License-Identifier: Apache-2.0
// Merges the summaries of the ranks into the figures of their run.
#include "analysis/run/run_analysis.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "analysis/communication/end_differences.h"
#include "analysis/communication/hang_stacks.h"
#include "analysis/communication/lateness_hosts.h"
#include "analysis/run/device_peak.h"
#include "analysis/run/run_links.h"
#include "analysis/scaling/long_run.h"
#include "analysis/statistics/statistics.h"
#include "analysis/statistics/warm_up.h"

namespace paceline::analysis {
namespace run_analysis_parts {

ConfigValue config_value(const nlohmann::json& value) {
  if (value.is_string()) return {value.get<std::string>(), {}, true};
  return {value.dump(), value.is_number() ? std::optional(value.get<double>()) : std::nullopt};
}

// `--set KEY=VALUE` gives text. Numbers and words of JSON are taken as that.
ConfigValue value_of(const std::string& text) {
  const auto parsed = nlohmann::json::parse(text, nullptr, false);
  return config_value(parsed.is_number() || parsed.is_boolean() ? parsed : nlohmann::json(text));
}

// Puts what the marks `run` of a rank say into the description.
void describe(const RankSummary& rank, RunConfig& config) {
  for (const std::string& description : rank.descriptions) {
    const auto parsed = nlohmann::json::parse(description, nullptr, false);
    if (!parsed.is_object()) continue;
    for (const auto& [key, value] : parsed.items()) config[key] = config_value(value);
  }
}

// The run's description: the mark `run` of the first rank, on top of what the user gave to the recorder.
RunConfig config_of(const std::vector<RankSummary>& ranks) {
  RunConfig config;
  for (const RankSummary& rank : ranks) {
    for (const auto& [key, value] : rank.set) config.emplace(key, value_of(value));
  }
  if (!ranks.empty()) describe(ranks.front(), config);
  return config;
}

// Batches that differ between the ranks. A rank describes the whole batch as if all ranks had its own, so the mean of
// what they describe is the real one.
void add_batches(RunAnalysis& run) {
  std::vector<RankBatch> batches;
  std::map<std::string, std::vector<double>> wholes = {{"global_batch", {}}, {"images_per_iteration", {}}};
  nlohmann::json by_rank = nlohmann::json::array();
  for (std::size_t index = 0; index < run.per_rank.size(); ++index) {
    RunConfig own;
    describe(run.per_rank[index], own);
    const auto batch = own.number("batch_per_rank");
    if (!batch) continue;
    batches.push_back({index, *batch, *batch * own.number("accumulate").value_or(1)});
    by_rank.push_back(nlohmann::json::parse(own["batch_per_rank"].text));
    for (auto& [key, values] : wholes) {
      if (const auto whole = own.number(key)) values.push_back(*whole);
    }
  }
  const auto differs = [&](double RankBatch::*figure) {
    const auto first = [&](const RankBatch& batch) { return batch.*figure == batches.front().*figure; };
    return !std::ranges::all_of(batches, first);
  };
  const bool batch_differs = differs(&RankBatch::batch), images_differ = differs(&RankBatch::images);
  if (batch_differs) run.config["batch_per_rank"] = config_value(by_rank);
  if (!batch_differs && !images_differ) return;
  for (const auto& [key, values] : wholes) {
    if (values.empty()) continue;
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    const bool is_whole = mean == std::round(mean);
    run.config[key] = config_value(is_whole ? nlohmann::json(std::llround(mean)) : nlohmann::json(mean));
  }
  if (images_differ) run.unequal_batches = std::move(batches);
}

void add_accuracy(RunAnalysis& run) {
  // The first rank that marked any; the others repeat it.
  const auto source = std::ranges::find_if(run.per_rank, [](const auto& rank) { return !rank.accuracies.empty(); });
  if (source != run.per_rank.end()) run.accuracy_curve = source->accuracies;
  if (const auto target = run.config.number("target_accuracy")) run.target_accuracy = *target;
  for (const auto& point : run.accuracy_curve) {
    run.accuracy = point.accuracy;
    run.best_accuracy = std::max(run.best_accuracy.value_or(0), point.accuracy);
    if (!run.seconds_to_accuracy && point.accuracy >= run.target_accuracy) {
      run.seconds_to_accuracy = 1e-9 * static_cast<double>(point.time_ns);
    }
  }
}

// One duration for each iteration that all ranks finished: the mean over the ranks.
RunIterations combine(const std::vector<RankSummary>& per_rank) {
  std::vector<RankIterations> ranks;
  for (const RankSummary& rank : per_rank) {
    ranks.push_back({rank.iterations, rank.losses.main_thread, rank.losses.located});
  }
  RunIterations combined;
  std::vector<std::int64_t> durations;
  for (const RunIteration& one : joined_iterations(ranks)) {
    if (!one.finished) continue;
    combined.numbers.push_back(one.number);
    combined.seconds.push_back(one.mean_ns * 1e-9);
    combined.spans.push_back({one.start_ns, one.end_ns});
    durations.push_back(one.duration_ns());
  }
  combined.count = durations.size();
  combined.median_ns = median(durations);
  combined.p95_ns = quantile(durations, 0.95);
  combined.warmup = combined.count < 2 ? 0 : std::max<std::size_t>(1, combined.count / 10);
  durations.erase(durations.begin(), durations.begin() + static_cast<std::ptrdiff_t>(combined.warmup));
  combined.steady_median_ns = median(durations);
  combined.warmup_by_mser5 = mser5_warm_up(combined.seconds);
  return combined;
}

void add_throughput(RunIterations& iterations, std::optional<double> images_per_iteration) {
  if (!images_per_iteration || iterations.steady_median_ns <= 0) return;
  iterations.steady_images_per_s = *images_per_iteration / (1e-9 * static_cast<double>(iterations.steady_median_ns));
  if (const auto median = median_interval(iterations.steady()); median && median->low > 0) {
    iterations.steady_ci95 = Interval{*images_per_iteration / median->high, *images_per_iteration / median->low};
  }
}

// The peak of all ranks' devices: the description gives that of one, or it follows from the name of the device.
std::optional<double> peak_flops(const RunAnalysis& run) {
  if (const auto peak = run.config.number("peak_flops")) return *peak * run.ranks;
  const std::string dtype = run.config.text("dtype");
  return dtype.empty() ? std::nullopt : peak_flops_of(run.per_rank, dtype);
}

// The description gives the operations of an image or of an iteration of all ranks.
void add_flops(RunAnalysis& run) {
  RunIterations& iterations = run.iterations;
  std::optional<double> flops = run.config.number("flops_per_iteration");
  const auto of_image = run.config.number("flops_per_image"), images = run.config.number("images_per_iteration");
  if (!flops && of_image && images) flops = *of_image * *images;
  if (!flops || !(*flops > 0) || iterations.steady_median_ns <= 0) return;
  iterations.flops_per_s = *flops / (1e-9 * static_cast<double>(iterations.steady_median_ns));
  const auto peak = peak_flops(run);
  if (peak && *peak > 0) iterations.flops_share_of_peak = *iterations.flops_per_s / *peak;
}

// The mean of what the ranks measured; nothing unless all did.
std::optional<double> measured_peak(const std::vector<RankSummary>& ranks, std::optional<double> LayerCosts::*peak) {
  double sum = 0;
  for (const RankSummary& rank : ranks) {
    if (!(rank.layers.*peak)) return std::nullopt;
    sum += *(rank.layers.*peak) / static_cast<double>(ranks.size());
  }
  return ranks.empty() ? std::nullopt : std::optional(sum);
}

// What the ranks' marks and the description say, as the mean of a rank.
void add_layers(RunAnalysis& run) {
  RunLayers& layers = run.layers;
  layers.peak_flops = measured_peak(run.per_rank, &LayerCosts::peak_flops);
  layers.peak_bytes = measured_peak(run.per_rank, &LayerCosts::peak_bytes);
  if (const auto peak = peak_flops(run); peak && *peak > 0) layers.peak_flops = *peak / run.ranks;
  if (const auto peak = run.config.number("peak_bytes_per_s"); peak && *peak > 0) layers.peak_bytes = *peak;
  const auto images = run.config.number("images_per_iteration");
  if (!images) return;
  std::vector<const LayerCosts*> ranks;
  for (const RankSummary& rank : run.per_rank) ranks.push_back(&rank.layers);
  layers.work = sum_of_work(ranks);
  // A rank of a pipeline computes its layers for the images of all its stages.
  const double images_of_rank = *images * run.config.number("pipeline_stages").value_or(1) / run.ranks;
  for (LayerWork& work : layers.work) {
    work.flops *= images_of_rank / static_cast<double>(ranks.size());
    work.bytes *= images_of_rank / static_cast<double>(ranks.size());
    work.iteration_ns /= static_cast<double>(ranks.size());
  }
}

constexpr double least_step_change = 0.02;  // of the median step

// The phase whose mean over ranks and iterations changed most in the direction of the step time.
std::optional<RunIterations::ChangedPhase> changed_phase(const RunIterations& iterations,
                                                         const std::vector<RankSummary>& ranks) {
  const StepChange& change = *iterations.change.change;
  const std::span numbers = std::span(iterations.numbers).subspan(iterations.warmup);
  const bool drift = change.kind == StepChange::Kind::drift;
  const std::int64_t first = numbers.front(), border = numbers[drift ? numbers.size() / 2 : change.at];
  std::array<double, phase_count> before{}, after{};
  double before_count = 0, after_count = 0;
  for (const RankSummary& rank : ranks) {
    for (const Iteration& iteration : rank.iterations) {
      if (!std::ranges::binary_search(numbers, iteration.number)) continue;
      const bool early = iteration.number >= first && iteration.number < border;
      ++(early ? before_count : after_count);
      for (std::size_t phase = 0; phase < phase_count; ++phase) {
        (early ? before : after)[phase] += static_cast<double>(iteration.phase_ns[phase]);
      }
    }
  }
  if (before_count == 0 || after_count == 0) return std::nullopt;
  const double sign = change.after > change.before ? 1 : -1;
  std::size_t most = 0;
  const auto growth = [&](std::size_t phase) {
    return sign * (after[phase] / after_count - before[phase] / before_count);
  };
  for (std::size_t phase = 1; phase < phase_count; ++phase) {
    if (growth(phase) > growth(most)) most = phase;
  }
  return RunIterations::ChangedPhase{static_cast<Phase>(most), before[most] / before_count, after[most] / after_count};
}

void add_step_change(RunIterations& iterations, const std::vector<RankSummary>& ranks) {
  if (iterations.count == 0) return;
  iterations.change = test_step_change(iterations.steady(),
                                       least_step_change * 1e-9 * static_cast<double>(iterations.steady_median_ns));
  if (iterations.change.change) iterations.changed_phase = changed_phase(iterations, ranks);
}

RunLosses losses_over(const std::vector<RankSummary>& ranks) {
  RunLosses sum;
  for (const RankSummary& rank : ranks) {
    const RankLosses& losses = rank.losses;
    sum.events += losses.events;
    sum.main_ns += losses.main_ns;
    sum.located = sum.located && losses.located;
    sum.damaged = sum.damaged || rank.damaged;
    if (losses.main_thread) {
      sum.ranks.push_back(rank.rank);
    } else if (losses.other_threads) {
      sum.helper_ranks.push_back(rank.rank);
    }
    for (const auto& cause : losses.causes) {
      if (std::ranges::find(sum.causes, cause) == sum.causes.end()) sum.causes.push_back(cause);
    }
    sum.iterations.insert(sum.iterations.end(), rank.touched_iterations.begin(), rank.touched_iterations.end());
  }
  std::ranges::sort(sum.iterations);
  sum.iterations.erase(std::unique(sum.iterations.begin(), sum.iterations.end()), sum.iterations.end());
  return sum;
}

// A run that did not end, and one whose iterations are not all known, did not train on all images that `--set images`
// announced.
std::optional<double> images_of(const RunAnalysis& run) {
  const auto planned = run.config.number("images"), per_iteration = run.config.number("images_per_iteration");
  if (run.ended && !run.failed && !run.losses.damaged && planned) return planned;
  if (run.refused() || !per_iteration || run.iterations.count == 0) return std::nullopt;
  return *per_iteration * static_cast<double>(run.iterations.count);
}

void add_ranks(RunAnalysis& run) {
  double waiting = 0, counted = 0;
  run.ranks = static_cast<int>(run.per_rank.size());
  for (const RankSummary& rank : run.per_rank) {
    run.ranks = std::max(run.ranks, rank.world_size);
    if (run.format.empty()) run.format = rank.format;
    const bool new_host = std::ranges::find(run.hosts, rank.host) == run.hosts.end();
    if (new_host && !rank.host.empty()) run.hosts.push_back(rank.host);
    run.span_ns = std::max(run.span_ns, rank.end_ns);
    run.wall_ns = std::max(run.wall_ns, rank.wall_ns);
    for (const auto& [cause, lost] : rank.dropped) {
      run.dropped += lost;
      run.dropped_by_cause[cause] += lost;
    }
    run.ended = run.ended && rank.ended;
    run.failed = run.failed || !failure_of(rank).empty();
    if (rank.damaged) run.damage.push_back(rank.path + ": " + rank.damage);
    run.clock_error_ns = std::max(run.clock_error_ns, rank.clock_error_ns);
    if (rank.waiting_for_cpu) waiting += *rank.waiting_for_cpu, ++counted;
  }
  if (counted > 0) run.waiting_for_cpu = waiting / counted;
  run.communication_observed =
      run.ranks == 1 || (std::ranges::any_of(run.per_rank, [](const auto& rank) { return rank.communicated; }) &&
                         std::ranges::none_of(run.per_rank, [](const auto& rank) { return rank.unobserved > 0; }));
  run.losses = losses_over(run.per_rank);
  if (run.per_rank.size() < 2) return;
  for (RankSummary& rank : run.per_rank) {
    if (rank.first_loss) leave_out_miscounted(rank.iterations, rank.first_loss->start_ns);
  }
}

void add_ranges(RunAnalysis& run) {
  std::vector<const std::vector<RangeStatistics>*> ranks;
  for (const RankSummary& rank : run.per_rank) ranks.push_back(&rank.ranges);
  run.ranges = merged_ranges(std::move(ranks));
}

// The index of each rank's host in `hosts`; empty if the host of a rank is not known.
std::vector<std::uint32_t> hosts_of_ranks(const RunAnalysis& run) {
  std::vector<std::uint32_t> indices;
  for (const RankSummary& rank : run.per_rank) {
    if (rank.host.empty()) return {};
    indices.push_back(static_cast<std::uint32_t>(std::ranges::find(run.hosts, rank.host) - run.hosts.begin()));
  }
  return indices;
}

// Hosts whose ranks leave the collectives later than those of other hosts, by more than the stated error of the clocks
// and a hundredth of a step. Nobody is late for it: lateness compares times of one clock.
void find_wrong_clocks(RunAnalysis& run, const std::vector<double>& end_differences) {
  const std::vector<std::uint32_t> hosts = hosts_of_ranks(run);
  const auto& steps_ns = run.lateness_table.step_ns;
  if (hosts.empty() || run.hosts.size() < 2 || end_differences.empty() || steps_ns.empty()) return;
  const auto in_part = [&](std::size_t host, bool inside) {  // median over the ranks of the host, or of the others
    std::vector<std::int64_t> ends;
    for (std::size_t r = 0; r < hosts.size(); ++r) {
      if ((hosts[r] == host) == inside) ends.push_back(static_cast<std::int64_t>(end_differences[r]));
    }
    return static_cast<double>(median(std::move(ends)));
  };
  const double step_ns = std::accumulate(steps_ns.begin(), steps_ns.end(), 0.0) / static_cast<double>(steps_ns.size());
  const double least_ns = std::max(run.clock_error_ns, least_lateness_cost * step_ns);
  for (std::size_t host = 0; host < run.hosts.size(); ++host) {
    const double ahead_ns = in_part(host, true) - in_part(host, false);
    if (ahead_ns > least_ns) run.wrong_clocks.push_back({host, ahead_ns});
  }
}

// The warm-up has no worst arrival: it begins late for other reasons.
std::vector<RankArrivals> arrivals_of(const Collectives& collectives, std::size_t ranks, const RunIterations& steps) {
  const std::int64_t steady_from_ns =
      steps.warmup < steps.spans.size() ? steps.spans[steps.warmup].start_ns : std::numeric_limits<std::int64_t>::min();
  std::vector<RankArrivals> arrivals(ranks);
  std::vector<std::int64_t> most(ranks);
  for (const Collective& collective : collectives.matched) {
    if (!collective.timed) continue;
    std::int64_t waited = 0, from = collective.last_start_ns;
    for (const MemberCall& call : collective.calls) {
      ++arrivals[call.rank].collectives;
      waited += collective.wait_ns(call);
      from = std::min(from, call.blocked_from_ns);
    }
    if (waited <= most[collective.last_rank] || from < steady_from_ns) continue;
    most[collective.last_rank] = waited;
    arrivals[collective.last_rank].worst = {from, collective.last_start_ns + collective.transfer_ns};
  }
  return arrivals;
}

void add_collectives(RunAnalysis& run, const std::vector<CollectiveCalls>& calls, const Collectives& collectives) {
  std::vector<std::span<const Iteration>> iterations;
  std::vector<std::span<const Interlude>> interludes;
  for (const RankSummary& rank : run.per_rank) {
    iterations.emplace_back(rank.iterations);
    interludes.emplace_back(rank.interludes);
  }
  run.unmatched_calls = collectives.unmatched_calls;
  run.waits = waits_of(collectives, calls.size());
  run.lone_interludes = lone_interludes(run.per_rank, collectives);
  if (run.losses.located) {
    run.lateness_table = lateness_of(collectives, iterations);
    const LatenessTable& table = run.lateness_table;
    run.lateness = test_lateness(table, 0);  // by one clock for each rank
    run.host_lateness = test_lateness(lateness_of_hosts(table, hosts_of_ranks(run)), 0);
    find_wrong_clocks(run, end_differences(collectives, calls.size()));
    run.irregularity = test_irregularity(table, run.lateness);
    for (const LateRank& late : run.lateness.late) {
      run.lateness_causes.push_back(
          {slow_phase(table, iterations, late, interludes), lateness_pattern(table, late.rank)});
    }
  }
  run.link_uses = link_uses(collectives, link_ends(run));
  if (run.losses.located) run.small_collectives = small_collectives(collectives, iterations);
  run.collectives = collectives.rows;
  run.hangs = find_hangs(calls);
}

BreakdownRules rules_of(const RunAnalysis& run) {
  return {run.ranks, run.config.text("evaluate") == "all ranks", run.global_batch_kept};
}

void add_breakdown(RunAnalysis& run) {
  std::int64_t step_ns = 0, communication_ns = 0, training_ns = 0;
  for (const RankSummary& rank : run.per_rank) {
    for (const Phase phase : {Phase::forward, Phase::backward, Phase::optimizer}) {
      training_ns += rank.phase_ns[static_cast<std::size_t>(phase)];
    }
    for (const Iteration& iteration : rank.iterations) {
      if (iteration.lost || !run.losses.located) continue;
      step_ns += iteration.duration_ns;
      communication_ns += iteration.phase_ns[static_cast<std::size_t>(Phase::communication)];
    }
  }
  if (step_ns > 0 && run.ranks > 1 && run.communication_observed) {
    run.communication_share_of_step = static_cast<double>(communication_ns) / static_cast<double>(step_ns);
  }
  if ((step_ns > 0 || training_ns > 0) && !run.refused()) {
    run.breakdown = break_down(run.per_rank, rules_of(run));
    classify(*run.breakdown, rules_of(run), run.iterations.steady());
  }
}

std::string name_of(const std::string& path) {
  const std::filesystem::path named = std::filesystem::path(path).lexically_normal();
  const std::string name = (named.has_filename() ? named : named.parent_path()).filename().string();
  return name.empty() || name == "." ? path : name;
}

// `calls` and `collectives` are those of the ranks, by rank.
RunAnalysis analysis_of(std::vector<RankSummary> ranks, const std::vector<CollectiveCalls>& calls,
                        const Collectives& collectives, const std::string& path) {
  RunAnalysis run;
  run.path = path;
  run.name = name_of(path);
  run.per_rank = std::move(ranks);
  run.config = config_of(run.per_rank);
  add_batches(run);
  add_ranks(run);
  add_accuracy(run);
  add_ranges(run);
  add_collectives(run, calls, collectives);
  run.crowded_cpus = crowded_cpus(run.per_rank);
  run.iterations = combine(run.per_rank);
  add_step_change(run.iterations, run.per_rank);
  run.arrivals = arrivals_of(collectives, calls.size(), run.iterations);
  if (run.communication_observed) run.efficiencies = efficiencies_of(run.per_rank, run.iterations.numbers);
  run.images = images_of(run);
  add_throughput(run.iterations, run.config.number("images_per_iteration"));
  add_flops(run);
  add_layers(run);
  add_breakdown(run);
  return run;
}

}  // namespace run_analysis_parts

void RunConfig::set(const std::string& key, double value) { (*this)[key] = run_analysis_parts::config_value(value); }

std::vector<std::size_t> RunIterations::slow() const {
  constexpr double slow_factor = 1.5;
  const double median_s = 1e-9 * static_cast<double>(steady_median_ns);
  std::vector<std::size_t> indices;
  for (std::size_t i = warmup; i < count; ++i) {
    if (median_s > 0 && seconds[i] >= slow_factor * median_s) indices.push_back(i);
  }
  return indices;
}

std::optional<double> RunAnalysis::images_per_s() const {
  if (!images || wall_ns <= 0) return std::nullopt;
  return *images / (1e-9 * static_cast<double>(wall_ns));
}

void RunAnalysis::keep_global_batch() {
  if (!breakdown) return;
  global_batch_kept = true;
  classify(*breakdown, run_analysis_parts::rules_of(*this), iterations.steady());
}

RunAnalysis analyse_run(std::vector<RankSummary> ranks, const std::string& path) {
  std::ranges::stable_sort(ranks, {}, &RankSummary::rank);
  std::vector<CollectiveCalls> calls;
  for (RankSummary& rank : ranks) calls.push_back(std::exchange(rank.collective_calls, {}));  // nothing else needs them
  const Collectives collectives = match_collectives(calls);
  return run_analysis_parts::analysis_of(std::move(ranks), calls, collectives, path);
}

RunAnalysis analyse_ranks(const RunIndex& index, const std::string& path) {
  RunAnalysis run = run_analysis_parts::analysis_of(summaries_of(index), index.calls(), index.collectives(), path);
  if (!run.hangs.empty()) run.hang_stacks = last_stacks_text(index.trace());
  return run;
}

}  // namespace paceline::analysis
