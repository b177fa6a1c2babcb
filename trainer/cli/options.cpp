// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "cmake/version/version.h"
#include "trainer/cli/explain.h"
#include "trainer/cli/help.h"
#include "trainer/cli/option_table.h"
#include "trainer/cli/settings.h"
#include "trainer/core/error.h"
#include "trainer/updaters/kinds.h"

namespace paceline::train {
namespace {

constexpr const char* description =
    "Trains an image classifier with data parallelism, one process for each MPI rank:\n"
    "  paceline-train make-dataset DIR && mpirun --bind-to none -n 2 paceline-train --data DIR\n"
    "Exits with status 0 when the run is complete, 1 when it failed or was interrupted, 2 for a wrong command line.";

// Before MPI_Init only the launcher's environment has the rank: variables of Open MPI, MPICH and Slurm.
bool first_rank_by_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const char* value = std::getenv(name)) return std::string_view(value) == "0";
  }
  return true;
}

// Parses the whole command line. A second parser parses it again with the settings of a file or a preset, which the
// first one has found.
struct Parser {
  CLI::App app{description, "paceline-train"};
  CommandLine result;
  std::string config, preset, topic;
  bool show_settings = false;
  CLI::App *make = nullptr, *bench = nullptr;
  CLI::Option* help = nullptr;

  Parser() {
    app.set_help_flag();
    app.set_version_flag("--version", [] { return version_text("paceline-train"); })
        ->description("print the version and exit");
    help =
        app.add_option("-h,--help", topic, "print this text; with a TOPIC, print its options; with all, every option")
            ->expected(0, 1)
            ->type_name("[TOPIC]");
    add_training_options(app, result.train);
    app.add_option("--config", config,
                   "TOML file of settings, named like the options; the command line takes precedence")
        ->type_name("FILE");
    app.add_option("--preset", preset,
                   "settings of a published experiment; --config and the command line take precedence")
        ->check(CLI::IsMember(preset_names()));
    app.add_flag("--show-config", show_settings, "print all settings in the format of a file for --config and exit");
    make = app.add_subcommand("make-dataset", "draw a data set of ten shapes and textures");
    add_make_dataset(*make, result.make_dataset);
    bench = app.add_subcommand("bench-allreduce",
                               "compare the speed of the communicators; run it under mpirun as for training");
    add_bench_allreduce(*bench, result.bench_allreduce);
    for (CLI::App* command : {make, bench}) command->set_help_flag("-h,--help", "print this text");
  }

  void parse(std::vector<std::string> arguments) {
    std::ranges::reverse(arguments);  // the order that CLI11 expects
    app.parse(arguments);
  }

  CLI::Option* option(const std::string& key) { return app.get_option_no_throw("--" + key); }
};

// Whether the command line or one of the settings gives an option, or an option that excludes it.
bool is_decided(const CLI::Option& option, const std::vector<Setting>& settings) {
  const auto given = [&](const CLI::Option& one) {
    return one.count() > 0 || std::ranges::any_of(settings, [&](const Setting& s) { return one.check_lname(s.key); });
  };
  return given(option) || std::ranges::any_of(option.get_excludes(), [&](const CLI::Option* o) { return given(*o); });
}

// The value that a switch or another option with one value was given; nothing if it still has its default.
std::optional<std::string> decision(Parser& parser, const std::vector<Setting>& settings, const std::string& key) {
  const CLI::Option& option = *parser.option(key);
  if (option.count() > 0) return option.results().front();
  const auto found = std::ranges::find(settings, key, &Setting::key);
  if (found != settings.end() && !found->values.empty()) return found->values.front();
  return is_decided(option, settings) ? std::optional<std::string>("false") : std::nullopt;
}

// Whether a setting loses its effect through a source that overrules its own: --schedule cosine on the command line
// over a preset with lr-steps. Owners that are not overruled have the values of file and preset, `beside`.
bool is_idle(Parser& parser, const std::vector<Setting>& above, const std::vector<Setting>& beside,
             const std::string& key) {
  bool overruled = false;
  for (const OptionOwner& owner : find_option(key)->owners) {
    const std::optional<std::string> value = decision(parser, above, owner.owner);
    overruled = overruled || value;
    const std::optional<std::string> here = value ? value : decision(parser, beside, owner.owner);
    if (here && owner.suits(*here)) return false;
  }
  return overruled;
}

// The settings of the --config file, and after it of the preset, for options that are not decided yet.
std::vector<Setting> settings_beside(Parser& parser) {
  std::vector<Setting> file, chosen;
  if (!parser.config.empty()) file = read_settings(parser.config);
  std::string preset = parser.preset;
  for (const Setting& setting : file) {
    if (setting.key != "preset" || !preset.empty()) continue;
    if (setting.values.size() != 1 || std::ranges::count(preset_names(), setting.values[0]) == 0) {
      throw Error(fmt::format("{}: preset is one of {}", setting.place, fmt::join(preset_names(), ", ")),
                  Status::usage);
    }
    preset = setting.values[0];
  }
  const std::vector<Setting> of_preset = preset.empty() ? std::vector<Setting>() : preset_settings(preset);
  std::vector<Setting> all = file;
  all.insert(all.end(), of_preset.begin(), of_preset.end());
  for (const std::vector<Setting>* source : {&std::as_const(file), &of_preset}) {
    std::vector<Setting> added;
    for (const Setting& setting : *source) {
      if (setting.key == "preset") continue;
      const OptionRow* row = find_option(setting.key);
      if (row == nullptr) {
        const std::string meant = suggestion(setting.key, parser.app, "");
        throw Error(setting.place, fmt::format("there is no setting '{}'", setting.key) + meant,
                    meant.empty() ? "paceline-train --help all lists them" : "", Status::usage);
      }
      if (row->command_line_only) {
        throw Error(setting.place, fmt::format("'{}' is only allowed on the command line", setting.key),
                    "remove it from the file", Status::usage);
      }
      const CLI::Option* option = parser.option(setting.key);
      if (!is_decided(*option, chosen) && !is_idle(parser, chosen, all, setting.key)) added.push_back(setting);
    }
    chosen.insert(chosen.end(), added.begin(), added.end());
  }
  return chosen;
}

// Decided by the type that CLI11 prints in the help text: UINT, INT or FLOAT, followed by checks.
bool takes_number(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.starts_with("UINT") || type.starts_with("INT") || type.starts_with("FLOAT");
}

std::vector<std::string> as_arguments(Parser& parser, const std::vector<Setting>& settings) {
  std::vector<std::string> arguments;
  for (const Setting& setting : settings) {
    const CLI::Option& option = *parser.option(setting.key);
    if (setting.text && takes_number(option)) {  // the caller adds the place
      throw Error(fmt::format("--{} takes a number: leave out the quotation marks", setting.key), Status::usage);
    }
    if (option.get_items_expected_max() == 0) {  // a switch
      const bool on = setting.values == std::vector<std::string>{"true"};
      if (!on && setting.values != std::vector<std::string>{"false"}) {
        throw Error(fmt::format("{}: '{}' is true or false", setting.place, setting.key), Status::usage);
      }
      if (on) arguments.push_back("--" + setting.key);
      continue;
    }
    for (const std::string& value : setting.values) arguments.push_back(fmt::format("--{}={}", setting.key, value));
  }
  return arguments;
}

// Adds the place in the file to a message whose first option comes from a setting.
std::string with_place(const std::string& message, const std::vector<Setting>& settings) {
  const std::size_t dashes = message.find("--");
  if (dashes == std::string::npos) return message;
  const auto ends = [](unsigned char c) { return std::isalnum(c) == 0 && c != '-'; };
  const auto name = message.begin() + static_cast<std::ptrdiff_t>(dashes) + 2;
  const std::string key(name, std::find_if(name, message.end(), ends));
  const auto found = std::ranges::find(settings, key, &Setting::key);
  return found == settings.end() ? message : found->place + ": " + message;
}

// An error message for an option that is given without effect or without a value; empty if there is none.
std::string useless_option(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    if (std::ranges::count(option->results(), "") > 0) return option->get_name() + ": is empty: leave it out";
    const bool on = option->get_items_expected_max() > 0 || option->as<bool>();
    const std::string why = idle(app, *option);
    if (on && !why.empty()) return fmt::format("{} {}", option->get_name(), why);
  }
  return {};
}

// The same for a pipeline and the options beside it.
std::string check_pipeline(const TrainOptions& options) {
  const PipelineOptions& o = options.pipeline;
  if (!o.used()) return {};
  const char* const option = o.stages > 1 ? "--pipeline-stages" : "--microbatches";
  const auto refuse = [&](const std::string& wrong, const std::string& remedy) {
    return fmt::format("{}: {}: {}", option, wrong, remedy);
  };
  if (options.device != "cpu") return refuse("pipelines are for CPUs", "take --device cpu");
  if (!updater_kind(options.updater).pipelines) {
    return refuse("does not work with --updater " + options.updater, "take --updater allreduce");
  }
  if (options.accumulate > 1 || options.optimization.grow_batch > 1) {
    return refuse("the batch is divided already", "leave out --accumulate and --grow-batch, or raise --batch-size");
  }
  if (options.on_bad_image == "skip")
    return refuse("its stages would see different images", "take --on-bad-image stop");
  if (!options.reduction.ring_order.empty()) return refuse("has an order of the ranks", "leave out --ring-order");
  if (options.batch_size % o.microbatches != 0) {
    return fmt::format("--microbatches {}: does not divide --batch-size {}: take a divisor", o.microbatches,
                       options.batch_size);
  }
  if (options.optimization.ghost_batch > options.batch_size / o.microbatches) {
    return fmt::format("--ghost-batch {}: a microbatch has {} images: give at most that",
                       options.optimization.ghost_batch, options.batch_size / o.microbatches);
  }
  if (options.deterministic && o.stages > 1 && o.split == "measured") {
    return "--deterministic: measured times differ each time: give --pipeline-split operations";
  }
  return {};
}

// An error message for options that contradict each other; empty if they do not.
std::string check_options(TrainOptions& options) {
  if (options.data.empty() && !options.synthetic) return "--data DIR or --synthetic is required";
  if (options.evaluate_only && options.import_weights.empty() && !options.resume) {
    return "--evaluate-only: the run has no weights to evaluate: give --import-weights FILE, or --checkpoint FILE "
           "--resume";
  }
  if (options.fraction <= 0) return "--fraction: expected a number above 0, at most 1";
  if (options.device == "cpu" && options.dtype != "f32" && options.dtype != "bf16") {
    return fmt::format("--dtype {}: not available on CPUs: use f32, or --device cuda", options.dtype);
  }
  if (options.optimization.ghost_batch > options.batch_size) {
    return fmt::format("--ghost-batch {}: a batch has {} images: give at most that", options.optimization.ghost_batch,
                       options.batch_size);
  }
  const UpdaterKind& updater = updater_kind(options.updater);
  if (options.reduction.registered && !updater.allreduces) {
    return fmt::format("--registered-buffers: NCCL reduces no gradients with --updater {}", options.updater);
  }
  if (options.deterministic && options.device != "cpu") {
    return "--deterministic: cuDNN's algorithms are chosen for speed: take --device cpu";
  }
  if (options.deterministic && updater.varies != nullptr) {
    return fmt::format("--deterministic: --updater {} {}: take another updater", updater.name, updater.varies);
  }
  if (!updater.on_gpus && options.device != "cpu") {
    return fmt::format("--updater {}: not available on GPUs: take --device cpu, or allreduce", updater.name);
  }
  if (updater.shards_optimizer && options.optimization.optimizer.name == "lars") {
    return fmt::format(
        "--optimizer lars: needs the norms of whole layers, and --updater {} divides them: take "
        "--updater allreduce",
        updater.name);
  }
  if (options.optimization.sync_batch_norm && !updater.lockstep) {
    return fmt::format(
        "--sync-batch-norm: ranks cannot wait for each other in each layer with --updater {}: take allreduce",
        updater.name);
  }
  if (const std::string wrong = check_pipeline(options); !wrong.empty()) return wrong;
  return complete(options.optimization);
}

// Prints the texts of --help and --show-config. Returns whether one of them was given.
bool answer(Parser& parser) {
  if (parser.help->count() > 0) {
    const std::string topic = parser.topic == "true" ? "" : parser.topic;
    const std::vector<std::string> topics = help_topics();
    if (!topic.empty() && std::ranges::count(topics, topic) == 0) {
      throw Error(fmt::format("--help: no topic '{}'; known: {}", topic, fmt::join(topics, ", ")), Status::usage);
    }
    const std::string usage = topic.empty() ? fmt::format("{}\n", description) : "";
    if (first_rank_by_environment()) fmt::print("{}{}", usage, help_text(parser.app, topic));
    return true;
  }
  if (parser.show_settings && first_rank_by_environment()) fmt::print("{}", settings_text(parser.app));
  return parser.show_settings;
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  std::vector<Setting> settings;
  auto parser = std::make_unique<Parser>();
  const auto refuse = [&](const std::string& what) {
    if (first_rank_by_environment()) {
      fmt::print(stderr, "paceline-train: {} (see paceline-train --help)\n",
                 with_place(with_option_names(what), settings));
    }
    parser->result.action = CommandLine::Action::exit;
    parser->result.status = 2;
    return parser->result;
  };
  try {
    parser->parse(arguments);
    settings = settings_beside(*parser);
    if (!settings.empty()) {
      std::vector<std::string> all = as_arguments(*parser, settings);
      all.insert(all.end(), arguments.begin(), arguments.end());
      parser = std::make_unique<Parser>();
      parser->parse(all);
    }
    if (answer(*parser)) {
      parser->result.action = CommandLine::Action::exit;
      return parser->result;
    }
  } catch (const CLI::Success& asked) {  // for the help of another command, or for the version
    if (first_rank_by_environment()) parser->app.exit(asked);
    parser->result.action = CommandLine::Action::exit;
    return parser->result;
  } catch (const CLI::ParseError& error) {
    return refuse(explain(error, parser->app));
  } catch (const Error& error) {
    return refuse(error.what());
  }
  CommandLine& result = parser->result;
  if (parser->make->parsed()) {
    result.action = CommandLine::Action::make_dataset;
    const bool sized = parser->make->get_option("--image-size")->count() > 0;
    if (sized && result.make_dataset.format != "jpeg")
      return refuse("--image-size only applies to --format jpeg: leave it out");
    return result;
  }
  if (parser->bench->parsed()) {
    result.action = CommandLine::Action::bench_allreduce;
    const BenchAllreduceOptions& o = result.bench_allreduce;
    if (o.device == "cpu" && !o.libraries && (o.share_gpu || o.reduction.registered || o.reduction.ctas.most > 0)) {
      return refuse("--share-gpu, --nccl-ctas and --registered-buffers only apply to --device cuda and --libraries");
    }
    return result;
  }
  result.train.settings = settings_of(parser->app);
  result.train.learning_settings = learning_settings(result.train.settings);
  result.train.communicator_given = parser->option("communicator")->count() > 0;
  std::string wrong = useless_option(parser->app);
  if (wrong.empty()) wrong = check_options(result.train);
  return wrong.empty() ? result : refuse(wrong);
}

}  // namespace paceline::train
