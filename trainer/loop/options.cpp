#include "trainer/loop/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string_view>

#include "trainer/comm/communicator.h"
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
  for (const auto& [name, summary] : communicator_summaries()) help += fmt::format("\n{}: {}", name, summary);
  return help;
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
      ->check(CLI::PositiveNumber);
  app.add_option("--max-ahead", o.most_ahead,
                 "parameter_server: iterations that a rank may be ahead of the slowest; default: no limit");
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
    if (name == "--help" || name == "--data" || name == "--log" || name == "--checkpoint" || name == "--threads")
      continue;
    settings += fmt::format(
        "{}={}\n", name,
        option->count() > 0 ? fmt::format("{}", fmt::join(option->results(), ",")) : option->get_default_str());
  }
  return settings;
}

void add_bench_allreduce(CLI::App& app, BenchAllreduceOptions& o) {
  app.add_option("--sizes", o.sizes, "bytes of what is reduced, e.g. 4K,25M")->delimiter(',')->capture_default_str();
  app.add_option("--communicators", o.communicators, "names, separated by commas; default: all that suit the job")
      ->delimiter(',')
      ->check(CLI::IsMember(communicator_names()));
  app.add_option("--dtype", o.dtype, "type that the values travel in")
      ->check(CLI::IsMember(allreduce_dtypes()))
      ->capture_default_str();
  app.add_option("--iterations", o.iterations, "of which the median is printed")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
}

void add_training_options(CLI::App& app, TrainOptions& o) {
  const auto positive = CLI::Range(std::int64_t{1}, std::int64_t{1} << 40);
  app.add_option("--model", o.model, "resnet18, vgg16_bn, …: torchvision's names")->capture_default_str();
  auto* data =
      app.add_option("--data", o.data, "directory of CIFAR-10's binary files (data_batch_1.bin, …, test_batch.bin)");
  app.add_flag("--synthetic", o.synthetic, "made-up images in memory instead of --data")->excludes(data);
  app.add_option("--image-size", o.image_size, "synthetic: pixels on each side")
      ->check(CLI::Range(8, 4096))
      ->capture_default_str();
  app.add_option("--classes", o.classes, "synthetic: number of classes")
      ->check(CLI::Range(2, 256))
      ->capture_default_str();
  app.add_option("--train-images", o.train_images, "synthetic: training images an epoch")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--test-images", o.test_images, "synthetic: test images")->check(positive)->capture_default_str();
  app.add_option("--batch-size", o.batch_size, "images per rank and iteration")->check(positive)->capture_default_str();
  auto* epochs =
      app.add_option("--epochs", o.epochs, "passes over the training images")->check(positive)->capture_default_str();
  app.add_option("--iterations", o.iterations, "iterations of the whole run, instead of --epochs")
      ->check(positive)
      ->excludes(epochs);
  app.add_option("--threads", o.threads, "threads per rank; default: OMP_NUM_THREADS, else cores ÷ ranks of this host")
      ->check(CLI::Range(1, 4096));
  app.add_option("--lr", o.learning_rate, "learning rate after the warm-up")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--momentum", o.momentum, "of the gradient")->check(CLI::Range(0.0, 1.0))->capture_default_str();
  app.add_option("--weight-decay", o.weight_decay, "added to the gradient, times the weight")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--schedule", o.schedule,
                 "of the learning rate: constant, cosine (to 0 at the end), step (÷ 10 at 1/2 and 3/4 of the run)")
      ->check(CLI::IsMember({"constant", "cosine", "step"}))
      ->capture_default_str();
  app.add_option("--warmup-epochs", o.warmup_epochs, "epochs, fractions allowed, over which the rate rises to --lr")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of the first weights, the order of images and their crops")->capture_default_str();
  app.add_option("--dtype", o.dtype, "of the arithmetic: f32")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  app.add_option("--communicator", o.communicator, communicator_help())
      ->check(CLI::IsMember(communicator_names()))
      ->capture_default_str();
  app.add_option("--allreduce-dtype", o.allreduce_dtype, "type that gradients travel in; the 16-bit ones round")
      ->check(CLI::IsMember(allreduce_dtypes()))
      ->capture_default_str();
  app.add_option("--log", o.log, "file for one JSON object a line: start, iteration, epoch, end (rank 0 writes)");
  auto* checkpoint = app.add_option("--checkpoint", o.checkpoint,
                                    "file written after every epoch and when interrupted (rank 0 writes)");
  app.add_flag("--resume", o.resume,
               "go on from the --checkpoint file where it exists; a complete run is evaluated again")
      ->needs(checkpoint);
  app.add_option("--eval-every", o.eval_every, "epochs between evaluations; 0: only at the end")->capture_default_str();
  app.add_option("--target-accuracy", o.target_accuracy, "test accuracy, 0 to 1, the time to which is printed")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_flag("--freeze-batch-norm", o.freeze_batch_norm,
               "normalise with the running statistics and leave them alone");
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv) {
  CommandLine result;
  CLI::App app(description, "paceline-train");
  add_training_options(app, result.train);
  add_updater_options(app, result.train);
  CLI::App* make =
      app.add_subcommand("make-dataset", "draw a data set of ten shapes and textures in CIFAR-10's format");
  make->add_option("directory", result.make_dataset.directory, "made if needed")->required();
  make->add_option("--train", result.make_dataset.train, "training images")->capture_default_str();
  make->add_option("--test", result.make_dataset.test, "test images")->capture_default_str();
  make->add_option("--seed", result.make_dataset.seed, "of everything drawn")->capture_default_str();
  CLI::App* bench =
      app.add_subcommand("bench-allreduce", "time the communicators against each other, under mpirun as for training");
  add_bench_allreduce(*bench, result.bench_allreduce);

  const auto refuse = [&](const std::string& what) {
    if (first_rank_by_environment()) fmt::print(stderr, "paceline-train: {} (see paceline-train --help)\n", what);
    result.action = CommandLine::Action::exit;
    result.status = 2;
    return result;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    if (first_rank_by_environment()) app.exit(help);
    result.action = CommandLine::Action::exit;
    return result;
  } catch (const CLI::ParseError& error) {
    return refuse(error.what());
  }
  if (make->parsed()) {
    result.action = CommandLine::Action::make_dataset;
    return result;
  }
  if (bench->parsed()) {
    result.action = CommandLine::Action::bench_allreduce;
    return result;
  }
  if (result.train.data.empty() && !result.train.synthetic) return refuse("--data DIR or --synthetic is required");
  result.train.settings = settings_of(app);
  if (result.train.bucket_mb && result.train.updater != "overlap") return refuse("--bucket-mb is of --updater overlap");
  if (result.train.most_ahead && result.train.updater != "parameter_server") {
    return refuse("--max-ahead is of --updater parameter_server");
  }
  if (result.train.dtype == "bf16") return refuse("--dtype bf16 is not available in this build; use f32");
  return result;
}

}  // namespace paceline::train
