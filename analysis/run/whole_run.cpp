// SPDX-License-Identifier: Apache-2.0
// The figures of a run that need the events of all ranks together.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "analysis/graph/what_if.h"
#include "analysis/run/add_causes.h"
#include "analysis/run/pipeline_what_if.h"
#include "analysis/run/run_analysis.h"
#include "analysis/run/run_links.h"
#include "analysis/text/numbers.h"

#include <fmt/format.h>

namespace paceline::analysis {

namespace whole_run_parts {

// The messages of the trace; none where there are too many.
Messages add_messages(const Trace& trace, RunAnalysis& run) {
  std::uint64_t calls = 0;
  for (const RangeStatistics& range : run.ranges) {
    if (range.category == "point-to-point") calls += range.durations.count();
  }
  if (calls > most_matched_messages) {
    run.unmatched_messages = calls;
    return {};
  }
  if (calls == 0) return {};
  Messages messages = match_messages(trace);
  add_links(messages, run);
  MessageMatrix matrix = message_matrix(trace, messages);
  if (!matrix.pairs.empty()) run.messages = std::move(matrix);
  return messages;
}

// The ranks of a machine share its CPUs. Containers on one machine may differ in their host names, but not in the
// kernel's boot id.
RankCpus rank_cpus(const RunAnalysis& run) {
  std::map<std::string, std::pair<RankCpus::Machine, std::set<unsigned>>> machines;
  std::set<std::string> hosts;
  for (std::size_t r = 0; r < run.per_rank.size(); ++r) {
    const RankSummary& rank = run.per_rank[r];
    hosts.insert(rank.host);
    auto& [machine, cpus] = machines[rank.boot_id.empty() ? rank.host : rank.boot_id];
    machine.ranks.push_back(r);
    cpus.merge(numbers_of(fact(rank, "cpus_allowed")));
  }
  RankCpus out{.one_host = hosts.size() == 1};
  for (auto& [name, of] : machines) {
    if (of.second.empty()) continue;
    of.first.cpus = static_cast<double>(of.second.size());
    out.machines.push_back(std::move(of.first));
  }
  return out;
}

}  // namespace whole_run_parts

void add_causes(const RunIndex& index, RunAnalysis& run) {
  if (run.refused()) return;
  const RunIterations& iterations = run.iterations;
  IterationSets slow, changed;
  const std::vector<std::size_t> indices = iterations.slow();
  for (std::size_t i = iterations.warmup; i < iterations.count; ++i) {
    (std::ranges::binary_search(indices, i) ? slow.longer : slow.usual).push_back(iterations.numbers[i]);
  }
  const auto& change = iterations.change.change;
  if (change && change->kind != StepChange::Kind::drift && change->after > change->before) {
    const auto border = iterations.numbers.begin() + static_cast<std::ptrdiff_t>(iterations.warmup + change->at);
    changed.usual.assign(iterations.numbers.begin() + static_cast<std::ptrdiff_t>(iterations.warmup), border);
    changed.longer.assign(border, iterations.numbers.end());
  }
  std::vector<std::size_t> named;
  for (const auto* late : {&run.lateness.late, &run.irregularity.late}) {
    for (const LateRank& rank : *late) named.push_back(rank.rank);
  }
  run.causes = causes_of(index, iterations.numbers, slow, changed, std::move(named));
  if (!run.causes) return;
  std::vector<std::int64_t> starts;
  for (std::size_t r = 0; r < index.trace().ranks.size(); ++r) {
    const auto& of_rank = index.times(r).iterations;
    starts.push_back(of_rank.empty() ? index.trace().ranks[r].start_ns : of_rank.front().start_ns);
  }
  run.causes->used_cpus = used_share(index.trace(), whole_run_parts::rank_cpus(run), starts);
}

RunAnalysis analyse_run(const RunIndex& index, const std::string& path) {
  RunAnalysis run = analyse_ranks(index, path);
  const Messages messages = whole_run_parts::add_messages(index.trace(), run);
  // A range that lost its end could take any time of the path.
  if (run.refused()) return run;
  add_causes(index, run);
  const DependencyGraph graph = dependency_graph(index, &messages);
  run.critical_path = critical_path(index, graph);
  if (!run.critical_path) return run;
  const Predictor predictor(index, graph, training_setup(run), largest_kinds(index.phases(), *run.critical_path));
  // The costs of one iteration come from others.
  if (!predictor.usable() || predictor.iterations() < 2) return run;
  run.what_if = all_predictions(predictor);
  run.what_if->notes = prediction_limits(run, predictor);
  add_pipeline_predictions(run, *run.what_if);
  return run;
}

TrainingSetup training_setup(const RunAnalysis& run) {
  TrainingSetup setup;
  const auto text = [&](const char* key) { return run.config.text(key); };
  const std::string type = text("allreduce_dtype");
  if (type == "f16" || type == "bf16") setup.bytes_per_value = 2;
  if (type.empty()) setup.values = run.config.number("parameters");
  if (const auto algorithm = algorithm_named(text("communicator"))) setup.algorithm = *algorithm;
  constexpr std::string_view others[] = {"main_rank", "sharded", "local_sgd", "top_k", "power_sgd", "parameter_server"};
  const std::string updater = text("updater");
  if (std::ranges::find(others, updater) != std::end(others)) setup.other_updater = updater;
  setup.cpus = whole_run_parts::rank_cpus(run);
  if (const auto mib = run.config.number("bucket_mb")) setup.bucket_bytes = *mib * 1048576;
  return setup;
}

std::vector<std::string> prediction_limits(const RunAnalysis& run, const Predictor& predictor) {
  constexpr double good_replay = 0.05, much_cpu_waiting = 0.05;
  std::vector<std::string> limits;
  const double error = predictor.replayed_s() / predictor.step_s() - 1;
  if (std::abs(error) > good_replay) {
    limits.push_back(
        fmt::format("The replay of the unchanged run differs from the measured step by {}, so the predictions are as "
                    "uncertain.",
                    percent(std::abs(error))));
  }
  if (!run.crowded_cpus.empty() || run.waiting_for_cpu.value_or(0) > much_cpu_waiting) {
    limits.push_back(
        "Threads of this run share CPUs. The predictions keep the work as slow as it was, although a change of one "
        "rank or thread changes what the others get. The scheduler makes the iterations of such a run differ, so that "
        "neither the measured median step nor its replay is exact.");
  }
  const TrainingSetup setup = training_setup(run);
  const bool shares = predictor.schedule() && *predictor.schedule() != GradientSchedule::double_buffering;
  if (predictor.sharing().any() && shares && setup.other_updater.empty()) {
    limits.push_back(
        std::string(
            "The ranks have no core to spare for threads that communicate beside computation. Overlap and double "
            "buffering are predicted to take ") +
        (setup.cpus.one_host ? "the time of the transfers, which are copies in memory,"
                             : "CPU time for the transfers") +
        " from the computing threads, beside which the transfers take longer.");
  }
  if (!setup.other_updater.empty() && run.per_rank.size() > 1) {
    limits.push_back(
        fmt::format("The updater {} does not average whole gradients by allreduce, so fewer bytes, buckets, other "
                    "schedules and other algorithms are not predicted.",
                    setup.other_updater));
  }
  if (setup.other_updater == "local_sgd") {
    limits.push_back(
        "The predictions are of the median step. Where most steps of local SGD average nothing, they leave out what "
        "the averages cost.");
  }
  if (predictor.iterations() < 20) {
    limits.push_back(
        fmt::format("Intervals need 20 iterations after warm-up, and this run has {}.", predictor.iterations()));
  }
  return limits;
}

}  // namespace paceline::analysis
