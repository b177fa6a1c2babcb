// SPDX-License-Identifier: Apache-2.0
// paceline whatif: the step time of a run if something about it were different.
#include <fmt/format.h>

#include "analysis/cli/commands.h"
#include "analysis/cli/interruption.h"
#include "analysis/cli/print_line.h"
#include "analysis/cli/reading_options.h"
#include "analysis/graph/what_if.h"
#include "analysis/report/changes.h"
#include "analysis/report/predictions.h"
#include "analysis/run/pipeline_what_if.h"
#include "analysis/run/run_analysis.h"
#include "profiler/format/error.h"

namespace paceline::cli {
namespace whatif_command {

struct Options {
  std::string format = "text", output;
  bool fp16 = false, overlap = false, double_buffering = false, blocking = false, free_communication = false,
       balanced = false;
  double bucket_mb = 0, latency = 1, bandwidth = 1, batch = 1, loader = 1;
  std::string algorithm;
  int ranks = 0;
  std::vector<std::string> runs;
  analysis::Processes processes = analysis::Processes::automatic;
  std::string run() const { return analysis::RunPaths(runs).name(); }
  std::string relieve;  // the number of a rank, or a host
  std::vector<std::string> faster;
  std::vector<std::string> given;  // the options of changes, as the user wrote them
  analysis::PipelineChange pipeline;
};

// "conv*=2": the pattern before the last '=', and the factor after it.
analysis::FasterWork faster_work(const std::string& text) {
  const std::size_t sign = text.rfind('=');
  char* end = nullptr;
  const double factor = sign == std::string::npos ? 0 : std::strtod(text.c_str() + sign + 1, &end);
  if (sign == std::string::npos || sign == 0 || *end != '\0' || !(factor > 0 && factor <= 1e6)) {
    throw CLI::ValidationError("--faster", fmt::format("\"{}\": expected NAME=FACTOR, such as conv*=2", text));
  }
  return {text.substr(0, sign), factor};
}

// The ranks, as indices, that --relieve names: one by its number, or all of a host.
std::vector<std::size_t> ranks_named(const std::string& name, const analysis::RunAnalysis& run) {
  std::vector<std::size_t> ranks;
  for (std::size_t r = 0; r < run.per_rank.size(); ++r) {
    if (std::to_string(run.per_rank[r].rank) == name) return {r};
    if (run.per_rank[r].host == name) ranks.push_back(r);
  }
  if (ranks.empty()) throw Error(fmt::format("{}: the run has no such rank or host: --relieve {}", run.path, name));
  return ranks;
}

analysis::Changes changes_of(const Options& options, const analysis::RunAnalysis& run) {
  using analysis::GradientSchedule;
  analysis::Changes changes;
  if (options.fp16) changes.bytes_per_value = 2;
  if (options.overlap) changes.schedule = GradientSchedule::overlap;
  if (options.double_buffering) changes.schedule = GradientSchedule::double_buffering;
  if (options.blocking) changes.schedule = GradientSchedule::blocking;
  if (options.bucket_mb > 0) changes.bucket_bytes = options.bucket_mb * 1048576;
  if (!options.algorithm.empty()) changes.algorithm = analysis::algorithm_named(options.algorithm);
  changes.latency = options.latency;
  changes.byte_time = 1 / options.bandwidth;
  changes.free_communication = options.free_communication;
  changes.batch = options.batch;
  changes.loader = options.loader;
  changes.balanced = options.balanced;
  if (options.ranks > 0) changes.ranks = options.ranks;
  for (const std::string& text : options.faster) changes.faster.push_back(faster_work(text));
  if (!options.relieve.empty()) changes.relieved = ranks_named(options.relieve, run);
  return changes;
}

analysis::WhatIf predictions(const Options& options) {
  const analysis::Trace trace = cli::load_run(analysis::one_run(options.runs, options.processes));
  for (const std::string& note : trace.notes) print_line(stderr, "paceline whatif: {}", note);
  const analysis::RunIndex index(trace);
  analysis::RunAnalysis run = analyse_ranks(index, options.run());
  if (run.refused()) {
    throw Error(fmt::format("{}: events of a main thread were lost, so no replay is possible; record the run again",
                            options.run()));
  }
  if (options.pipeline.any()) {
    return pipeline_what_if(run, options.pipeline, fmt::format("{}", fmt::join(options.given, " ")));
  }
  const analysis::Changes changes = changes_of(options, run);
  const analysis::DependencyGraph graph = dependency_graph(index);
  std::vector<analysis::FasterWork> faster = changes.faster;
  if (!changes.any()) {
    if (const auto path = critical_path(index, graph)) faster = largest_kinds(index.phases(), *path);
  }
  const analysis::Predictor predictor(index, graph, training_setup(run), faster);
  if (predictor.program().iterations.empty()) {
    throw Error(
        fmt::format("{}: no iteration that all ranks finished; mark iterations with a range named iteration, or "
                    "record more of them",
                    options.run()));
  }
  if (!predictor.usable()) {
    throw Error(
        fmt::format("{}: the recorded calls do not fit together, so no replay is possible; record all ranks "
                    "without losses",
                    options.run()));
  }
  analysis::WhatIf found;
  if (changes.any()) {
    const std::string obstacle = predictor.obstacle(changes);
    if (!obstacle.empty()) throw Error(fmt::format("{}: {}", options.run(), obstacle));
    found = predictor.unchanged();
    found.predictions.push_back(predictor.predict(changes));
    found.predictions.back().title = found.predictions.back().options =
        fmt::format("{}", fmt::join(options.given, " "));
    found.predictions.back().title = "all of these together";
    if (options.given.size() < 2) found.predictions.back().title = "this change";
  } else {
    found = all_predictions(predictor);
  }
  found.notes = prediction_limits(run, predictor);
  if (changes.any()) return found;
  add_pipeline_predictions(run, found);
  run.what_if = std::move(found);
  return first_change_first(run);
}

int whatif(const Options& options) {
  const analysis::WhatIf found = predictions(options);
  const std::string text = options.format == "json" ? analysis::render_what_if_json(found, options.run())
                                                    : analysis::render_what_if_text(found, options.run());
  print_or_write(text, options.output);
  return 0;
}

}  // namespace whatif_command

void add_whatif(CLI::App& app, Command& chosen) {
  using whatif_command::Options;
  auto* command = app.add_subcommand(
      "whatif", "Predict the step time after changes; without a change, rank all changes that apply");
  auto options = std::make_shared<Options>();
  command->add_option("RUN", options->runs, "The recorded run, or directories that hold different ranks of one job")
      ->type_name("")
      ->required();
  add_processes_option(*command, options->processes);
  const auto factor = CLI::Range(1e-6, 1e6);
  const std::string changes = "Changes (they combine)";
  command->add_flag("--fp16,--bf16", options->fp16, "Send gradients in 16 bits")->group(changes);
  auto* overlap =
      command->add_flag("--overlap", options->overlap, "Average gradients in buckets beside backward")->group(changes);
  auto* buffering =
      command->add_flag("--double-buffering", options->double_buffering, "Average gradients during the next iteration")
          ->group(changes);
  auto* blocking =
      command->add_flag("--blocking", options->blocking, "Average the whole gradient after backward")->group(changes);
  overlap->excludes(buffering)->excludes(blocking);
  buffering->excludes(blocking);
  command->add_option("--bucket-mb", options->bucket_mb, "Size of the buckets for --overlap")
      ->type_name("MIB")
      ->check(CLI::Range(1e-6, 1e6))
      ->group(changes);
  command->add_option("--algorithm", options->algorithm, "Allreduce: ring, halving_doubling or tree")
      ->type_name("NAME")
      ->check(CLI::IsMember({"ring", "halving_doubling", "tree"}))
      ->group(changes);
  command->add_option("--latency", options->latency, "Multiply the network's latency by FACTOR")
      ->type_name("FACTOR")
      ->check(factor)
      ->group(changes);
  command->add_option("--bandwidth", options->bandwidth, "Multiply the network's bandwidth by FACTOR")
      ->type_name("FACTOR")
      ->check(factor)
      ->group(changes);
  command->add_flag("--free-communication", options->free_communication, "Let transfers take no time")->group(changes);
  command->add_option("--batch", options->batch, "Multiply the images per rank and iteration by FACTOR")
      ->type_name("FACTOR")
      ->check(factor)
      ->group(changes);
  command->add_option("--ranks", options->ranks, "Number of ranks, each with the recorded batch")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000))
      ->group(changes);
  command->add_flag("--balanced", options->balanced, "Give all ranks the same amount of work")->group(changes);
  command
      ->add_option("--relieve", options->relieve,
                   "Make this rank, or all ranks of this host, no slower than the others")
      ->type_name("RANK|HOST")
      ->group(changes);
  command->add_option("--loader", options->loader, "Make the loader FACTOR times as fast")
      ->type_name("FACTOR")
      ->check(factor)
      ->group(changes);
  command
      ->add_option(
          "--faster", options->faster,
          "Make ranges or kernels whose names match NAME (* matches any text) FACTOR times as fast; repeatable")
      ->type_name("NAME=FACTOR")
      ->group(changes);
  const std::string pipeline = "Changes of a pipeline (they combine with each other)";
  command->add_option("--microbatches", options->pipeline.microbatches, "Divide the same batch into M microbatches")
      ->type_name("M")
      ->check(CLI::Range(1, 1000000))
      ->group(pipeline);
  command->add_option("--stages", options->pipeline.stages, "Divide the same network into K stages")
      ->type_name("K")
      ->check(CLI::Range(1, 1000000))
      ->group(pipeline);
  command
      ->add_option("--split", options->pipeline.split,
                   "Begin the second and each further stage with these layers, separated by commas; or balanced: the "
                   "split with the shortest step")
      ->type_name("LAYERS")
      ->group(pipeline);
  command->add_option("--format", options->format, "text or json")
      ->type_name("FORMAT")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  command->add_option("-o,--output", options->output, "File to write. Default: standard output")->type_name("FILE");
  command->callback([options, command, changes, pipeline, &chosen] {
    for (const std::string& text : options->faster) whatif_command::faster_work(text);  // refuses wrong ones
    if (options->faster.size() > 250) throw CLI::ValidationError("--faster", "at most 250 names can be given");
    for (const CLI::Option* option : command->get_options()) {
      if (option->count() == 0) continue;
      if (option->get_group() != (options->pipeline.any() ? pipeline : changes)) {
        if (option->get_group() != changes) continue;
        throw CLI::ValidationError("--" + option->get_lnames().front(),
                                   "does not combine with --microbatches, --stages and --split");
      }
      std::string text = "--" + option->get_lnames().front();
      if (option->get_items_expected_max() > 0) text += " " + fmt::format("{}", fmt::join(option->results(), " "));
      options->given.push_back(text);
    }
    chosen = [options] { return whatif_command::whatif(*options); };
  });
}

}  // namespace paceline::cli
