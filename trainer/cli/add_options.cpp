#include "trainer/cli/add_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_times.h"
#include "trainer/cli/value_checks.h"
#include "trainer/comm/communicator.h"
#include "trainer/core/error.h"
#include "trainer/pipeline/schedule.h"
#include "trainer/updaters/kinds.h"

namespace paceline::train {
namespace {

constexpr std::uint64_t most_iterations = std::uint64_t{1} << 40, any_seed = ~std::uint64_t{0};

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

// The options of communicators, in training and in bench-allreduce.
void add_reduction_options(CLI::App& app, nccl::Options& o) {
  app.add_option("--ring-order", o.ring_order,
                 "order of the ranks in rings, e.g. 0,2,1,3: neighbours in this list send to each other; "
                 "default: by rank");
  app.add_option_function<std::string>(
         "--nccl-ctas", [&o](const std::string& text) { o.ctas = nccl::parse_ctas(text); },
         "NCCL: thread blocks of its kernels, most or least:most; default: NCCL's choice")
      ->type_name("[LEAST:]MOST");
  app.add_flag("--registered-buffers", o.registered,
               "NCCL: keep gradients in memory that NCCL allocates and registers");
  app.add_option(
         "--comm-timeout", o.timeout_s,
         "seconds that a collective call waits for a rank before the job ends with an error that names the rank")
      ->check(positive())
      ->capture_default_str();
}

std::string updater_help() {
  std::string help = "how gradients become a step:";
  for (const UpdaterKind* kind : updater_kinds()) help += fmt::format("\n{}: {}", kind->name, kind->summary);
  return help;
}

std::vector<std::string> updater_names() {
  std::vector<std::string> names;
  for (const UpdaterKind* kind : updater_kinds()) names.emplace_back(kind->name);
  return names;
}

// An option that one updater declares.
void add_option_of(CLI::App& app, const UpdaterKind& kind, const UpdaterOption& option, UpdaterValues& values) {
  auto* const added = app.add_option_function<double>(
      fmt::format("--{}", option.key), [&values, key = option.key](double value) { values[key] = value; },
      fmt::format("{}: {}", kind.name, option.help));
  added->type_name(option.whole ? "UINT" : "FLOAT")
      ->check(option.whole ? whole(static_cast<std::uint64_t>(option.least), static_cast<std::uint64_t>(option.most))
                           : number(option.least, option.most));
  if (option.standard) added->default_str(fmt::format("{}", *option.standard));
}

void add_updater_options(CLI::App& app, TrainOptions& o) {
  app.add_option("--updater", o.updater, updater_help())->check(CLI::IsMember(updater_names()))->capture_default_str();
  for (const UpdaterKind* kind : updater_kinds()) {
    for (const UpdaterOption& option : kind->options) add_option_of(app, *kind, option, o.updater_values);
  }
  app.add_option("--accumulate", o.accumulate,
                 "passes of --batch-size images whose gradients are added up for one step")
      ->check(whole(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--fault", o.faults,
                 "inject a fault for a profiler to find: slow-rank=RANK:MS, slow-loader=RANK:MS, slow-layers=MS, "
                 "duplicate-shards, "
                 "tiny-buckets");
}

void add_pipeline_options(CLI::App& app, PipelineOptions& o) {
  app.add_option("--pipeline-stages", o.stages,
                 "stages into which the layers are divided, each on ranks of its own (CPUs, --updater allreduce); the "
                 "number of ranks must be a multiple of it, and each replica has one rank for each stage")
      ->check(whole(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--microbatches", o.microbatches,
                 "equal parts of --batch-size that pass through the stages one after another; 1: one stage computes at "
                 "a time")
      ->check(whole(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--pipeline-schedule", o.schedule,
                 "gpipe: all forward passes before the first backward pass; 1f1b: one of each in turn, which keeps "
                 "fewer activations")
      ->check(CLI::IsMember(schedule_names()))
      ->capture_default_str();
  app.add_option("--pipeline-split", o.split,
                 "where the network is divided. measured: into equal measured times; operations: into equal numbers of "
                 "multiply-adds; else the first layer of the second and each further stage, e.g. layer2,layer4.0")
      ->capture_default_str();
}

void add_data_options(CLI::App& app, TrainOptions& o) {
  app.add_option("--image-size", o.image_size, "pixels on each side; default: synthetic 32, crops from JPEGs 224")
      ->check(whole(8, 4096));
  app.add_option("--classes", o.classes,
                 "synthetic: number of classes, default 10; with --data: the number that the data must have")
      ->check(whole(2, 1 << 20));
  app.add_option("--resize", o.resize, "CIFAR-10: enlarge images to this many pixels on each side, at least 32")
      ->check(whole(32, 4096));
  app.add_option(
         "--fraction", o.fraction,
         "use only this fraction of the images of each class of --data, from the first on, for training and for "
         "testing")
      ->check(number(0, 1))
      ->capture_default_str();
  app.add_option("--augment", o.augment,
                 "random changes to training images. crop: JPEGs are cropped, other images are shifted by up "
                 "to an eighth; mirror: half of them are mirrored; all: both; none: as in evaluation")
      ->check(CLI::IsMember({"all", "crop", "mirror", "none"}))
      ->capture_default_str();
  app.add_option("--sharding", o.sharding,
                 "what happens to images that do not fill an iteration at an epoch's end. exact: they are left out, "
                 "different ones in each epoch; equal-length: all are used, a few of them twice")
      ->check(CLI::IsMember({"exact", "equal-length"}))
      ->capture_default_str();
  app.add_option("--on-bad-image", o.on_bad_image,
                 "what happens if a picture is damaged or cannot be read. stop: the run ends; skip: the next good one "
                 "takes its place in training, evaluation leaves it out, and the run reports the number at its end")
      ->check(CLI::IsMember({"skip", "stop"}))
      ->capture_default_str();
  app.add_option("--loader-workers", o.loader_workers, "threads per rank that read and prepare images")
      ->check(whole(1, 256))
      ->capture_default_str();
  app.add_flag("--broadcast-data", o.broadcast_data,
               "rank 0 alone reads --data and sends it to all ranks, which keep it in memory");
}

void add_device_options(CLI::App& app, TrainOptions& o) {
  app.add_option("--device", o.device,
                 "device that computes: cpu; cuda: a GPU for each rank; auto: GPUs if there are any")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
      ->capture_default_str();
  app.add_flag("--share-gpu", o.share_gpu, "GPUs: let several ranks share one");
  app.add_flag("--cuda-graphs", o.cuda_graphs,
               "GPUs: launch forward and backward as graphs, for small batches; profiles then show no layers");
  app.add_flag("--no-fusion", o.no_fusion, "GPUs, f16: do not fuse batch norms into cuDNN's convolutions");
  app.add_option("--plan-cache", o.plan_cache,
                 "GPUs: file of the fastest plan for each convolution; none: search for plans in each run; default: "
                 "~/.cache/paceline/cudnn-plans.txt")
      ->type_name("FILE")
      ->capture_default_str();
}

}  // namespace

void add_training_options(CLI::App& app, TrainOptions& o) {
  app.add_option("--model", o.model, "resnet18, vgg16_bn, …: torchvision's names; vgg_lecture")
      ->type_name("NAME")
      ->capture_default_str();
  auto* data =
      app.add_option("--data", o.data,
                     "directory of CIFAR-10's binary files (data_batch_1.bin, …, test_batch.bin), or of JPEGs: "
                     "train/CLASS/*.jpg and val/CLASS/*.jpg")
          ->type_name("DIR");
  app.add_flag("--synthetic", o.synthetic, "random images in memory instead of --data")->excludes(data);
  add_data_options(app, o);
  app.add_option("--train-images", o.train_images, "synthetic: training images in each epoch")
      ->check(whole(1, 1 << 28))
      ->capture_default_str();
  app.add_option("--test-images", o.test_images, "synthetic: test images")
      ->check(whole(1, 1 << 28))
      ->capture_default_str();
  app.add_option("--batch-size", o.batch_size, "images per rank and iteration")
      ->check(whole(1, 1 << 28))
      ->capture_default_str();
  auto* epochs = app.add_option("--epochs", o.epochs, "passes over the training images")
                     ->check(whole(1, 1 << 30))
                     ->capture_default_str();
  app.add_option("--iterations", o.iterations, "iterations of the whole run, instead of --epochs")
      ->check(whole(1, most_iterations))
      ->excludes(epochs);
  app.add_option("--threads", o.threads, "threads per rank; default: OMP_NUM_THREADS, else cores ÷ ranks of this host")
      ->check(whole(1, 4096));
  app.add_option("--seed", o.seed, "seed of the initial weights, the order of images and their crops")
      ->check(whole(0, any_seed))
      ->capture_default_str();
  app.add_option("--dtype", o.dtype,
                 "type of the arithmetic: f32; bf16, with weights in f32, on GPUs and on processors with AVX512-BF16 "
                 "or AMX; tf32 and f16 on GPUs")
      ->check(CLI::IsMember({"f32", "tf32", "bf16", "f16"}))
      ->transform(type_name_of)
      ->capture_default_str();
  app.add_flag(
      "--deterministic", o.deterministic,
      "refuse options whose results differ when the run is repeated with the same numbers of ranks and threads");
  app.add_option("--communicator", o.communicator, communicator_help())
      ->check(CLI::IsMember(communicator_choice_names()))
      ->capture_default_str();
  app.add_option("--allreduce-dtype", o.allreduce_dtype, "type that gradients are sent in; the 16-bit types round them")
      ->check(CLI::IsMember(allreduce_dtypes()))
      ->transform(type_name_of)
      ->capture_default_str();
  add_reduction_options(app, o.reduction);
  app.add_option("--log", o.log, "file of JSON objects, one on each line: start, iteration, epoch, end (rank 0 writes)")
      ->type_name("FILE");
  auto* checkpoint = app.add_option("--checkpoint", o.checkpoint,
                                    "file written after every epoch, at the end and when interrupted (rank 0 writes)")
                         ->type_name("FILE");
  auto* resume = app.add_flag("--resume", o.resume,
                              "continue from the --checkpoint file if it exists; a complete run is evaluated again")
                     ->needs(checkpoint);
  app.add_flag("--overwrite-checkpoint", o.overwrite_checkpoint,
               "start from the beginning even if the --checkpoint file exists, and overwrite it")
      ->needs(checkpoint)
      ->excludes(resume);
  app.add_option(
         "--checkpoint-every", o.checkpoint_every,
         "when to write it before the end: epoch; a number of iterations, such as 500; a time, such as 10m (s, m, h)")
      ->type_name("WHEN")
      ->needs(checkpoint)
      ->check([](const std::string& text) -> std::string {
        try {
          parse_checkpoint_every(text);
        } catch (const Error& error) {
          return error.what();
        }
        return {};
      })
      ->capture_default_str();
  app.add_option("--keep", o.keep,
                 "number of checkpoints to keep: the newest is FILE, the one before it FILE.1, then FILE.2")
      ->needs(checkpoint)
      ->check(whole(1, 1000))
      ->capture_default_str();
  app.add_option("--eval-every", o.eval_every, "epochs between evaluations; 0: evaluate only at the end")
      ->check(whole(0, most_iterations))
      ->capture_default_str();
  app.add_option(
         "--import-weights", o.import_weights,
         "safetensors file of the initial weights and running statistics, with torchvision's names; --resume takes "
         "those of an existing checkpoint instead")
      ->type_name("FILE");
  app.add_option(
         "--export-weights", o.export_weights,
         "safetensors file that receives the weights at the end of the run, with torchvision's names; an existing "
         "file is replaced (rank 0 writes)")
      ->type_name("FILE");
  app.add_flag("--evaluate-only", o.evaluate_only,
               "do not train: evaluate the weights of --import-weights or of --checkpoint FILE --resume");
  app.add_option("--target-accuracy", o.target_accuracy,
                 "test accuracy, 0 to 1; the run reports the time until it is reached")
      ->check(number(0, 1))
      ->capture_default_str();
  add_device_options(app, o);
  add_optimization_options(app, o.optimization);
  add_updater_options(app, o);
  add_pipeline_options(app, o.pipeline);
}

void add_make_dataset(CLI::App& app, MakeDatasetOptions& o) {
  app.add_option("directory", o.directory, "directory of the data set, created if it is missing")->required();
  app.add_option("--train", o.train, "training images")->check(whole(1, 1 << 30))->capture_default_str();
  app.add_option("--test", o.test, "test images")->check(whole(1, 1 << 30))->capture_default_str();
  app.add_option("--seed", o.seed, "seed of the random numbers for all images")
      ->check(whole(0, any_seed))
      ->capture_default_str();
  app.add_option("--format", o.format, "cifar10: its binary files; jpeg: a folder of pictures")
      ->check(CLI::IsMember({"cifar10", "jpeg"}))
      ->capture_default_str();
  app.add_option("--image-size", o.image_size, "jpeg: pixels on each side")
      ->check(whole(8, 1024))
      ->capture_default_str();
}

void add_bench_allreduce(CLI::App& app, BenchAllreduceOptions& o) {
  app.add_option("--sizes", o.sizes,
                 fmt::format("sizes to reduce, in bytes; default: {}; with --libraries: {}",
                             fmt::join(default_sizes(false), ","), fmt::join(default_sizes(true), ",")))
      ->delimiter(',');
  auto* names = app.add_option("--communicators", o.communicators,
                               "names, separated by commas; default: all that can run this job")
                    ->delimiter(',')
                    ->check(CLI::IsMember(communicator_choice_names()));
  auto* device = app.add_option("--device", o.device, "memory of the values: cpu, cuda")
                     ->check(CLI::IsMember({"cpu", "cuda"}))
                     ->capture_default_str();
  app.add_flag("--libraries", o.libraries,
               "compare the libraries instead: MPI in host memory, CUDA-aware MPI and NCCL, if they are available")
      ->excludes(names)
      ->excludes(device);
  app.add_flag("--share-gpu", o.share_gpu, "let several ranks share one GPU, which NCCL refuses");
  app.add_option("--dtype", o.reduction.dtype, "type that the values are sent in")
      ->check(CLI::IsMember(allreduce_dtypes()))
      ->transform(type_name_of)
      ->capture_default_str();
  add_reduction_options(app, o.reduction);
  app.add_option("--iterations", o.iterations, "number of iterations, whose median is printed")
      ->check(whole(1, 1000000))
      ->capture_default_str();
}

}  // namespace paceline::train
