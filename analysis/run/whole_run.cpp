// The figures of a run that need the events of all ranks together.
#include <cmath>

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

}  // namespace whole_run_parts

RunAnalysis analyse_run(const Trace& trace, const std::string& path) {
  RunAnalysis run = analyse_run(summarise(trace), path);
  const Messages messages = whole_run_parts::add_messages(trace, run);
  // A range that lost its end could take any time of the path.
  if (run.refused()) return run;
  const PhaseTable table(trace);
  const DependencyGraph graph = dependency_graph(table, &messages);
  run.critical_path = critical_path(table, graph);
  if (!run.critical_path) return run;
  const Predictor predictor(table, graph, training_setup(run));
  // The costs of one iteration come from others.
  if (!predictor.usable() || predictor.iterations() < 2) return run;
  run.what_if = all_predictions(predictor);
  run.what_if->notes = prediction_limits(run, predictor);
  return run;
}

TrainingSetup training_setup(const RunAnalysis& run) {
  TrainingSetup setup;
  const auto text = [&](const char* key) {
    const auto found = run.config.find(key);
    return found != run.config.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const std::string type = text("allreduce_dtype");
  if (type == "f16" || type == "bf16") setup.bytes_per_value = 2;
  if (const auto algorithm = algorithm_named(text("communicator"))) setup.algorithm = *algorithm;
  if (const auto mib = run.number("bucket_mb")) setup.bucket_bytes = *mib * 1048576;
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
        "rank or thread changes what the others get.");
  }
  if (predictor.iterations() < 20) {
    limits.push_back(
        fmt::format("Intervals need 20 iterations after warm-up, and this run has {}.", predictor.iterations()));
  }
  return limits;
}

}  // namespace paceline::analysis
