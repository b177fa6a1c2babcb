#include "trainer/loop/options.h"

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

#include "trainer/comm/communicator.h"
#include "trainer/error.h"
#include "trainer/loop/help.h"
#include "trainer/loop/settings.h"
#include "trainer/loop/updater.h"

namespace paceline::train {
namespace {

constexpr const char* description =
    "Trains an image classifier with data parallelism, one MPI rank a process:\n"
    "  paceline-train make-dataset DIR && mpirun --bind-to none -n 2 paceline-train --data DIR\n"
    "Ends with status 0 when the run is complete, 1 when it failed or was interrupted, 2 for a wrong command line.";

// Before MPI_Init only the launcher's environment knows the rank: Open MPI's, MPICH's and Slurm's.
bool first_rank_by_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const char* value = std::getenv(name)) return std::string_view(value) == "0";
  }
  return true;
}

std::string communicator_help() {
  std::string help = "how gradients are averaged over the ranks:";
  for (const auto& [name, summary] : communicator_choices()) help += fmt::format("\n{}: {}", name, summary);
  return help;
}

std::vector<std::string> communicator_choice_names() {
  std::vector<std::string> names;
  for (const CommunicatorName& choice : communicator_choices()) names.push_back(choice.name);
  return names;
}

// What communicators have in common, in training and beside it.
void add_reduction_options(CLI::App& app, nccl::Options& o) {
  app.add_option("--ring-order", o.ring_order,
                 "order of the ranks in communicators, e.g. 0,2,1,3: neighbours in it send to each other in rings; "
                 "default: by rank");
  app.add_option_function<std::string>(
         "--nccl-ctas", [&o](const std::string& text) { o.ctas = nccl::parse_ctas(text); },
         "NCCL: blocks of threads that its kernels take, most or least:most; default: NCCL's choice")
      ->type_name("[LEAST:]MOST");
  app.add_flag("--registered-buffers", o.registered, "NCCL: gradients in memory that it allocates and registers");
  app.add_option("--comm-timeout", o.timeout_s, "NCCL: seconds until a rank that does not come ends the job")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

std::string updater_help() {
  std::string help = "how gradients become a step:";
  for (const auto& [name, summary] : updater_summaries()) help += fmt::format("\n{}: {}", name, summary);
  return help;
}

std::vector<std::string> updater_names() {
  std::vector<std::string> names;
  for (const UpdaterName& updater : updater_summaries()) names.push_back(updater.name);
  return names;
}

void add_updater_options(CLI::App& app, TrainOptions& o) {
  app.add_option("--updater", o.updater, updater_help())->check(CLI::IsMember(updater_names()))->capture_default_str();
  app.add_option("--bucket-mb", o.bucket_mb, "overlap: MiB of a bucket; default: 25, the first one 1 at most")
      ->check(CLI::Range(1e-6, 1e6));
  app.add_option("--max-ahead", o.most_ahead,
                 "parameter_server: iterations that a rank may be ahead of the slowest; default: no limit")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--accumulate", o.accumulate, "passes of --batch-size images whose gradients make one step")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option(
      "--fault", o.faults,
      "made on purpose, to be found: slow-rank=RANK:MS, slow-loader=RANK:MS, duplicate-shards, tiny-buckets");
}

// Of all options but those that may differ: where files are, and how much of its host a rank uses.
std::string settings_of(const CLI::App& app) {
  std::string settings;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (name == "--checkpoint") settings += option->count() > 0 ? "--checkpoint=given\n" : "";
    if (name == "--help" || name == "--data" || name == "--log" || name == "--checkpoint" || name == "--threads" ||
        name == "--loader-workers" || name == "--config" || name == "--plan-cache")
      continue;
    settings += fmt::format(
        "{}={}\n", name,
        option->count() > 0 ? fmt::format("{}", fmt::join(option->results(), ",")) : option->get_default_str());
  }
  return settings;
}

void add_bench_allreduce(CLI::App& app, BenchAllreduceOptions& o) {
  app.add_option("--sizes", o.sizes,
                 fmt::format("bytes of what is reduced; default: {}; with --libraries: {}",
                             fmt::join(default_sizes(false), ","), fmt::join(default_sizes(true), ",")))
      ->delimiter(',');
  auto* names =
      app.add_option("--communicators", o.communicators, "names, separated by commas; default: all that suit the job")
          ->delimiter(',')
          ->check(CLI::IsMember(communicator_choice_names()));
  auto* device = app.add_option("--device", o.device, "whose memory the values lie in: cpu, cuda")
                     ->check(CLI::IsMember({"cpu", "cuda"}))
                     ->capture_default_str();
  app.add_flag("--libraries", o.libraries,
               "instead: MPI in host memory, CUDA-aware MPI and NCCL side by side, as far as they are there")
      ->excludes(names)
      ->excludes(device);
  app.add_flag("--share-gpu", o.share_gpu, "several ranks on one GPU, which NCCL refuses");
  app.add_option("--dtype", o.reduction.dtype, "type that the values travel in")
      ->check(CLI::IsMember(allreduce_dtypes()))
      ->capture_default_str();
  add_reduction_options(app, o.reduction);
  app.add_option("--iterations", o.iterations, "of which the median is printed")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
}

void add_data_options(CLI::App& app, TrainOptions& o) {
  app.add_option("--image-size", o.image_size, "pixels on each side; default: synthetic 32, crops from JPEGs 224")
      ->check(CLI::Range(8, 4096));
  app.add_option("--classes", o.classes, "synthetic: number of classes; default: 10. Else: what the data must have")
      ->check(CLI::Range(2, 1 << 20));
  app.add_option("--resize", o.resize, "CIFAR-10: pixels on each side that images are enlarged to")
      ->check(CLI::Range(8, 4096));
  app.add_option("--fraction", o.fraction,
                 "of the images of each class: the first of --data, for training and for test")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--sharding", o.sharding,
                 "what becomes of images that make no whole iteration at an epoch's end. exact: left out, others each "
                 "epoch; equal-length: all are used, and a few twice")
      ->check(CLI::IsMember({"exact", "equal-length"}))
      ->capture_default_str();
  app.add_option("--loader-workers", o.loader_workers, "threads per rank that read and prepare images")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_flag("--broadcast-data", o.broadcast_data, "rank 0 alone reads --data, and sends it to the memory of all");
}

void add_device_options(CLI::App& app, TrainOptions& o) {
  app.add_option("--device", o.device, "what computes: cpu; cuda: a GPU for each rank; auto: GPUs where there are any")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
      ->capture_default_str();
  app.add_flag("--share-gpu", o.share_gpu, "GPUs: several ranks may have the same one");
  app.add_flag("--cuda-graphs", o.cuda_graphs,
               "GPUs: start forward and backward as a whole, for small batches; profiles then show no layers");
  app.add_flag("--no-fusion", o.no_fusion,
               "GPUs, f16: batch norms in kernels of their own, none in those of cuDNN's convolutions");
  app.add_option(
         "--plan-cache", o.plan_cache,
         "GPUs: file of the fastest ways to compute each convolution here; none: find them in each run; default: "
         "~/.cache/paceline/cudnn-plans.txt")
      ->capture_default_str();
}

void add_training_options(CLI::App& app, TrainOptions& o) {
  const auto positive = CLI::Range(std::int64_t{1}, std::int64_t{1} << 40);
  app.add_option("--model", o.model, "resnet18, vgg16_bn, …: torchvision's names; vgg_lecture")->capture_default_str();
  auto* data =
      app.add_option("--data", o.data,
                     "directory of CIFAR-10's binary files (data_batch_1.bin, …, test_batch.bin), or of JPEGs: "
                     "train/CLASS/*.jpg and val/CLASS/*.jpg");
  app.add_flag("--synthetic", o.synthetic, "made-up images in memory instead of --data")->excludes(data);
  add_data_options(app, o);
  app.add_option("--train-images", o.train_images, "synthetic: training images an epoch")
      ->check(CLI::Range(1, 1 << 28))
      ->capture_default_str();
  app.add_option("--test-images", o.test_images, "synthetic: test images")
      ->check(CLI::Range(1, 1 << 28))
      ->capture_default_str();
  app.add_option("--batch-size", o.batch_size, "images per rank and iteration")->check(positive)->capture_default_str();
  auto* epochs =
      app.add_option("--epochs", o.epochs, "passes over the training images")->check(positive)->capture_default_str();
  app.add_option("--iterations", o.iterations, "iterations of the whole run, instead of --epochs")
      ->check(positive)
      ->excludes(epochs);
  app.add_option("--threads", o.threads, "threads per rank; default: OMP_NUM_THREADS, else cores ÷ ranks of this host")
      ->check(CLI::Range(1, 4096));
  app.add_option("--seed", o.seed, "of the first weights, the order of images and their crops")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option(
         "--dtype", o.dtype,
         "of the arithmetic: f32; bf16, with weights in f32, on GPUs and on processors with AVX512-BF16 or AMX; tf32 "
         "and f16 on GPUs")
      ->check(CLI::IsMember({"f32", "tf32", "bf16", "f16"}))
      ->capture_default_str();
  app.add_flag("--deterministic", o.deterministic,
               "refuse what does not give the same bits when it is run again on the same ranks and threads");
  app.add_option("--communicator", o.communicator, communicator_help())
      ->check(CLI::IsMember(communicator_choice_names()))
      ->capture_default_str();
  app.add_option("--allreduce-dtype", o.allreduce_dtype, "type that gradients travel in; the 16-bit ones round")
      ->check(CLI::IsMember(allreduce_dtypes()))
      ->capture_default_str();
  add_reduction_options(app, o.reduction);
  app.add_option("--log", o.log, "file for one JSON object a line: start, iteration, epoch, end (rank 0 writes)");
  auto* checkpoint = app.add_option("--checkpoint", o.checkpoint,
                                    "file written after every epoch and when interrupted (rank 0 writes)");
  app.add_flag("--resume", o.resume,
               "go on from the --checkpoint file where it exists; a complete run is evaluated again")
      ->needs(checkpoint);
  app.add_option("--eval-every", o.eval_every, "epochs between evaluations; 0: only at the end")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--target-accuracy", o.target_accuracy, "test accuracy, 0 to 1, the time to which is printed")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
}

// The whole command line, once for a look at what is given and, where a file or a preset brings settings, once more
// with these.
struct Parser {
  CLI::App app{description, "paceline-train"};
  CommandLine result;
  std::string config, preset, topic;
  bool show_settings = false;
  CLI::App *make = nullptr, *bench = nullptr;
  CLI::Option* help = nullptr;

  Parser() {
    app.set_help_flag();
    help = app.add_option("-h,--help", topic, "this text; with a TOPIC, its options; with all, every option")
               ->expected(0, 1)
               ->type_name("[TOPIC]");
    add_training_options(app, result.train);
    add_device_options(app, result.train);
    add_optimization_options(app, result.train.optimization);
    add_updater_options(app, result.train);
    app.add_option("--config", config, "TOML file of settings, named like the options; the command line overrules it");
    app.add_option("--preset", preset, "settings of a published experiment; --config and the command line overrule it")
        ->check(CLI::IsMember(preset_names()));
    app.add_flag("--show-config", show_settings, "print all settings, as a file for --config, and end");
    make = app.add_subcommand("make-dataset", "draw a data set of ten shapes and textures");
    make->add_option("directory", result.make_dataset.directory, "made if needed")->required();
    make->add_option("--train", result.make_dataset.train, "training images")
        ->check(CLI::Range(1, 1 << 30))
        ->capture_default_str();
    make->add_option("--test", result.make_dataset.test, "test images")
        ->check(CLI::Range(1, 1 << 30))
        ->capture_default_str();
    make->add_option("--seed", result.make_dataset.seed, "of everything drawn")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    make->add_option("--format", result.make_dataset.format, "cifar10: its binary files; jpeg: a folder of pictures")
        ->check(CLI::IsMember({"cifar10", "jpeg"}))
        ->capture_default_str();
    make->add_option("--image-size", result.make_dataset.image_size, "jpeg: pixels on each side")
        ->check(CLI::Range(8, 1024))
        ->capture_default_str();
    bench = app.add_subcommand("bench-allreduce",
                               "time the communicators against each other, under mpirun as for training");
    add_bench_allreduce(*bench, result.bench_allreduce);
    for (CLI::App* command : {make, bench}) command->set_help_flag("-h,--help", "this text");
  }

  void parse(std::vector<std::string> arguments) {
    std::ranges::reverse(arguments);  // as CLI11 wants them
    app.parse(arguments);
  }

  CLI::Option* option(const std::string& key) { return app.get_option_no_throw("--" + key); }
};

// Whether an option, or one that cannot stand beside it, is given on the command line or by one of the settings.
bool is_decided(const CLI::Option& option, const std::vector<Setting>& settings) {
  const auto given = [&](const CLI::Option& one) {
    return one.count() > 0 || std::ranges::any_of(settings, [&](const Setting& s) { return one.check_lname(s.key); });
  };
  return given(option) || std::ranges::any_of(option.get_excludes(), [&](const CLI::Option* o) { return given(*o); });
}

// What the file of --config, and after it the preset, say of options that are still open.
std::vector<Setting> settings_beside(Parser& parser) {
  std::vector<Setting> file, chosen;
  if (!parser.config.empty()) file = read_settings(parser.config);
  std::string preset = parser.preset;
  for (const Setting& setting : file) {
    if (setting.key == "preset" && preset.empty() && setting.values.size() == 1) preset = setting.values[0];
  }
  const std::vector<Setting> of_preset = preset.empty() ? std::vector<Setting>() : preset_settings(preset);
  for (const std::vector<Setting>* source : {&std::as_const(file), &of_preset}) {
    std::vector<Setting> added;
    for (const Setting& setting : *source) {
      if (setting.key == "preset") continue;
      const CLI::Option* option = parser.option(setting.key);
      if (option == nullptr || option == parser.help || setting.key == "config" || setting.key == "show-config") {
        throw Error(fmt::format("{}: there is no setting '{}' (paceline-train --help all lists them)", setting.place,
                                setting.key),
                    Status::usage);
      }
      if (!is_decided(*option, chosen)) added.push_back(setting);
    }
    chosen.insert(chosen.end(), added.begin(), added.end());
  }
  return chosen;
}

std::vector<std::string> as_arguments(Parser& parser, const std::vector<Setting>& settings) {
  std::vector<std::string> arguments;
  for (const Setting& setting : settings) {
    const CLI::Option& option = *parser.option(setting.key);
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

// The message with the place of the setting that it names, if it names one.
std::string with_place(const std::string& message, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    const std::string option = "--" + setting.key;
    const std::size_t at = message.find(option), end = at + option.size();
    if (at == std::string::npos) continue;
    if (end < message.size() && (std::isalnum(static_cast<unsigned char>(message[end])) || message[end] == '-'))
      continue;
    return setting.place + ": " + message;
  }
  return message;
}

// What is wrong between the options, empty where nothing is.
std::string check_options(TrainOptions& options) {
  if (options.data.empty() && !options.synthetic) return "--data DIR or --synthetic is required";
  if (options.synthetic && options.classes > 256) return "--classes: synthetic data has 256 at most";
  if (options.synthetic && (options.resize || options.fraction < 1 || options.broadcast_data)) {
    return "--resize, --fraction and --broadcast-data are of --data; synthetic images take --image-size, "
           "--train-images";
  }
  if (options.fraction <= 0) return "--fraction: above 0, 1 at most";
  if (options.bucket_mb && options.updater != "overlap") return "--bucket-mb is of --updater overlap";
  if (options.most_ahead && options.updater != "parameter_server")
    return "--max-ahead is of --updater parameter_server";
  if (options.device == "cpu" && options.dtype != "f32" && options.dtype != "bf16") {
    return fmt::format("--dtype {} is not available on CPUs; use f32, or --device cuda", options.dtype);
  }
  if (options.device == "cpu" && (options.share_gpu || options.cuda_graphs || options.no_fusion)) {
    return "--share-gpu, --cuda-graphs and --no-fusion are of --device cuda";
  }
  const nccl::Options& reduction = options.reduction;
  if (options.device == "cpu" && (reduction.registered || reduction.ctas.most > 0)) {
    return "--nccl-ctas and --registered-buffers are of --device cuda";
  }
  if (reduction.registered && !updater_allreduces(options.updater)) {
    return fmt::format("--registered-buffers: NCCL reduces no gradients with --updater {}", options.updater);
  }
  if (options.deterministic && options.device != "cpu") {
    return "--deterministic: cuDNN's algorithms are chosen for speed; take --device cpu";
  }
  if (options.deterministic && options.updater == "parameter_server") {
    return "--deterministic: with --updater parameter_server gradients are applied as they come, in another order each "
           "time; take another updater";
  }
  const bool one_at_a_time =
      options.updater == "allreduce" || options.updater == "single" || options.updater == "main_rank";
  if (options.optimization.sync_batch_norm && !one_at_a_time) {
    return fmt::format(
        "--sync-batch-norm: ranks cannot wait for each other in each layer with --updater {}; take allreduce",
        options.updater);
  }
  return complete(options.optimization);
}

// Prints what --help and --show-config ask for; returns whether they did.
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
      fmt::print(stderr, "paceline-train: {} (see paceline-train --help)\n", with_place(what, settings));
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
  } catch (const CLI::CallForHelp& help) {  // of another command
    if (first_rank_by_environment()) parser->app.exit(help);
    parser->result.action = CommandLine::Action::exit;
    return parser->result;
  } catch (const CLI::ParseError& error) {
    return refuse(error.what());
  } catch (const Error& error) {
    return refuse(error.what());
  }
  CommandLine& result = parser->result;
  if (parser->make->parsed()) {
    result.action = CommandLine::Action::make_dataset;
    return result;
  }
  if (parser->bench->parsed()) {
    result.action = CommandLine::Action::bench_allreduce;
    return result;
  }
  result.train.settings = settings_of(parser->app);
  result.train.communicator_given = parser->option("communicator")->count() > 0;
  const std::string wrong = check_options(result.train);
  return wrong.empty() ? result : refuse(wrong);
}

}  // namespace paceline::train
