// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/add_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trainer/checkpoint/checkpoint_times.h"
#include "trainer/cli/declare.h"
#include "trainer/cli/value_checks.h"
#include "trainer/comm/communicator.h"
#include "trainer/core/error.h"
#include "trainer/pipeline/schedule.h"

namespace paceline::train {
namespace {

constexpr std::uint64_t most_iterations = std::uint64_t{1} << 40, any_seed = ~std::uint64_t{0};

const OptionRow result_does_not_change{.learning = false}, of_this_rank{.same = SameOnRanks::no};

OptionRow with_synthetic(const char* value, bool learning = true) {
  return {.owners = {{"synthetic", {value}}}, .learning = learning};
}
OptionRow on_gpu(bool learning = true, SameOnRanks same = SameOnRanks::yes) {
  return {.owners = {{"device", {"cuda", "auto"}}}, .same = same, .learning = learning};
}

template <typename Choices>
std::vector<std::string> names_of(const Choices& choices) {
  std::vector<std::string> names;
  for (const auto& choice : choices) names.emplace_back(choice.name);
  return names;
}

// The text with a line for each choice.
template <typename Choices>
std::string with_summaries(std::string text, const Choices& choices) {
  for (const auto& choice : choices) text += fmt::format("\n{}: {}", choice.name, choice.summary);
  return text;
}

using Choice = CommunicatorName;

std::vector<Choice> updater_choices() {
  std::vector<Choice> choices;
  for (const UpdaterKind* kind : updater_kinds()) choices.push_back({kind->name, kind->summary});
  return choices;
}

// These options of communicators are the same in training and in bench-allreduce.
void add_ring_order(Declare& d, nccl::Options& o) {
  d.option("ring-order", o.ring_order,
           "order of the ranks in rings, e.g. 0,2,1,3: neighbours in this list send to each other; "
           "default: by rank");
}

void add_reduction_options(Declare& d, nccl::Options& o) {
  d.calling<std::string>(
       "nccl-ctas", [&o](const std::string& text) { o.ctas = nccl::parse_ctas(text); },
       "NCCL: thread blocks of its kernels, most or least:most; default: NCCL's choice", on_gpu())
      ->type_name("[LEAST:]MOST");
  d.flag("registered-buffers", o.registered, "NCCL: keep gradients in memory that NCCL allocates and registers",
         on_gpu());
  d.option("comm-timeout", o.timeout_s, positive(),
           "seconds that a collective call waits for a rank before the job ends with an error that names the rank",
           result_does_not_change);
}

// An option that one updater declares.
void add_option_of(Declare& d, const UpdaterKind& kind, const UpdaterOption& option, UpdaterValues& values) {
  auto* const added =
      d.calling<double>(option.key, [&values, key = option.key](const double& value) { values[key] = value; },
                        fmt::format("{}: {}", kind.name, option.help), {.owners = {{"updater", {kind.name}}}});
  added->type_name(option.whole ? "UINT" : "FLOAT")
      ->check(option.whole ? whole(static_cast<std::uint64_t>(option.least), static_cast<std::uint64_t>(option.most))
                           : number(option.least, option.most));
  if (option.standard) added->default_str(fmt::format("{}", *option.standard));
}

void add_run_options(Declare& d, TrainOptions& o) {
  d.topic(Topic::run);
  d.option("model", o.model, "resnet18, vgg16_bn, …: torchvision's names; vgg_lecture")->type_name("NAME");
  auto* data = d.option("data", o.data,
                        "directory of CIFAR-10's binary files (data_batch_1.bin, …, test_batch.bin), or of JPEGs: "
                        "train/CLASS/*.jpg and val/CLASS/*.jpg",
                        of_this_rank)
                   ->type_name("DIR");
  d.flag("synthetic", o.synthetic, "random images in memory instead of --data", result_does_not_change)->excludes(data);
  d.option("batch-size", o.batch_size, whole(1, 1 << 28), "images per rank and iteration");
  auto* epochs =
      d.option("epochs", o.epochs, whole(1, 1 << 30), "passes over the training images", result_does_not_change);
  d.option("iterations", o.iterations, whole(1, most_iterations), "iterations of the whole run, instead of --epochs",
           result_does_not_change)
      ->default_str("")
      ->excludes(epochs);
  d.option("threads", o.threads, whole(1, 4096),
           "threads per rank; default: OMP_NUM_THREADS, else cores ÷ ranks of this host", of_this_rank)
      ->default_str("");
  d.option("seed", o.seed, whole(0, any_seed), "seed of the initial weights, the order of images and their crops");
  d.flag("deterministic", o.deterministic,
         "refuse options whose results differ when the run is repeated with the same numbers of ranks and threads",
         result_does_not_change);
  d.option("dtype", o.dtype, one_of({"f32", "tf32", "bf16", "f16"}),
           "type of the arithmetic: f32; bf16, with weights in f32, on GPUs and on processors with AVX512-BF16 "
           "or AMX; tf32 and f16 on GPUs")
      ->transform(type_name_of);
  d.option("lr", o.optimization.rate.rate, positive(),
           "learning rate after the warm-up; with --lr-scaling, that of --base-batch");
}

void add_data_options(Declare& d, TrainOptions& o) {
  d.topic(Topic::data);
  d.option("image-size", o.image_size, whole(8, 4096),
           "pixels on each side; default: synthetic 32, crops from JPEGs 224");
  d.option("classes", o.classes, whole(2, 1 << 20),
           "synthetic: number of classes, default 10; with --data: the number that the data must have",
           result_does_not_change);
  d.option("train-images", o.train_images, whole(1, 1 << 28), "synthetic: training images in each epoch",
           with_synthetic("true"));
  d.option("test-images", o.test_images, whole(1, 1 << 28), "synthetic: test images", with_synthetic("true"));
  d.option("resize", o.resize, whole(32, 4096),
           "CIFAR-10: enlarge images to this many pixels on each side, at least 32", with_synthetic("false"));
  d.option("fraction", o.fraction, number(0, 1),
           "use only this fraction of the images of each class of --data, from the first on, for training and for "
           "testing",
           with_synthetic("false"));
  d.option("augment", o.augment, one_of({"all", "crop", "mirror", "none"}),
           "random changes to training images. crop: JPEGs are cropped, other images are shifted by up "
           "to an eighth; mirror: half of them are mirrored; all: both; none: as in evaluation");
  d.option("sharding", o.sharding, one_of({"exact", "equal-length"}),
           "what happens to images that do not fill an iteration at an epoch's end. exact: they are left out, "
           "different ones in each epoch; equal-length: all are used, a few of them twice");
  d.option("on-bad-image", o.on_bad_image, one_of({"skip", "stop"}),
           "what happens if a picture is damaged or cannot be read. stop: the run ends; skip: the next good one "
           "takes its place in training, evaluation leaves it out, and the run reports the number at its end",
           with_synthetic("false", false));
  d.option("loader-workers", o.loader_workers, whole(1, 256), "threads per rank that read and prepare images",
           of_this_rank);
  d.flag("broadcast-data", o.broadcast_data,
         "rank 0 alone reads --data and sends it to all ranks, which keep it in memory",
         with_synthetic("false", false));
}

void add_model_options(Declare& d, TrainOptions& o) {
  d.topic(Topic::model);
  const std::vector<std::string> bottlenecks{"resnet50", "resnet101", "resnet152"};
  std::vector<std::string> resnets{"resnet18", "resnet34"};
  resnets.insert(resnets.end(), bottlenecks.begin(), bottlenecks.end());
  d.option("width", o.optimization.width, number(0.01, 16),
           "multiply the published numbers of channels by this factor: narrow networks for small machines");
  d.option("import-weights", o.import_weights,
           "safetensors file of the initial weights and running statistics, with torchvision's names; --resume takes "
           "those of an existing checkpoint instead")
      ->type_name("FILE");
  d.flag("resnet-v1", o.optimization.resnet_v1,
         "ResNets: put a bottleneck's stride into its first 1x1 convolution (v1); default: into the 3x3 (v1.5)",
         {.owners = {{"model", bottlenecks}}});
  d.flag("exact", o.exact,
         "3x3 convolutions without Winograd's algorithm, whose rounding errors are a few times as large: slower");
  d.flag("zero-gamma", o.optimization.zero_gamma,
         "ResNets: the last batch norm of each residual block starts with scale 0", {.owners = {{"model", resnets}}});
}

void add_parallel_options(Declare& d, TrainOptions& o) {
  d.topic(Topic::parallel);
  d.option("communicator", o.communicator, one_of(names_of(communicator_choices())),
           with_summaries("how gradients are averaged over the ranks:", communicator_choices()));
  d.option("allreduce-dtype", o.allreduce_dtype, one_of(allreduce_dtypes()),
           "type that gradients are sent in; the 16-bit types round them")
      ->transform(type_name_of);
  add_ring_order(d, o.reduction);
  d.option("updater", o.updater, one_of(names_of(updater_choices())),
           with_summaries("how gradients become a step:", updater_choices()));
  for (const UpdaterKind* kind : updater_kinds()) {
    for (const UpdaterOption& option : kind->options) add_option_of(d, *kind, option, o.updater_values);
  }
  PipelineOptions& p = o.pipeline;
  const OptionRow with_stages{.owners = {{"pipeline-stages", {"1"}, true}}, .learning = false};
  d.option("pipeline-stages", p.stages, whole(1, 1 << 20),
           "stages into which the layers are divided, each on ranks of its own (CPUs, --updater allreduce); the "
           "number of ranks must be a multiple of it, and each replica has one rank for each stage",
           result_does_not_change);
  d.option("microbatches", p.microbatches, whole(1, 1 << 20),
           "equal parts of --batch-size that pass through the stages one after another; 1: one stage computes at "
           "a time");
  d.option("pipeline-schedule", p.schedule, one_of(schedule_names()),
           "gpipe: all forward passes before the first backward pass; 1f1b: one of each in turn, which keeps "
           "fewer activations",
           with_stages);
  d.option("pipeline-split", p.split,
           "where the network is divided. measured: into equal measured times; operations: into equal numbers of "
           "multiply-adds; else the first layer of the second and each further stage, e.g. layer2,layer4.0",
           with_stages);
  d.option("fault", o.faults,
           "inject a fault for a profiler to find: slow-rank=RANK:MS, slow-loader=RANK:MS, slow-layers=MS, "
           "duplicate-shards, "
           "tiny-buckets");
  add_reduction_options(d, o.reduction);
}

void add_device_options(Declare& d, TrainOptions& o) {
  d.topic(Topic::device);
  d.option("device", o.device, one_of({"cpu", "cuda", "auto"}),
           "device that computes: cpu; cuda: a GPU for each rank; auto: GPUs if there are any");
  d.flag("share-gpu", o.share_gpu, "GPUs: let several ranks share one", on_gpu(false));
  d.flag("cuda-graphs", o.cuda_graphs,
         "GPUs: launch forward and backward as graphs, for small batches; profiles then show no layers", on_gpu());
  d.flag("no-fusion", o.no_fusion, "GPUs, f16: do not fuse batch norms into cuDNN's convolutions", on_gpu());
  d.option("plan-cache", o.plan_cache,
           "GPUs: file of the fastest plan for each convolution; none: search for plans in each run; default: "
           "~/.cache/paceline/cudnn-plans.txt",
           on_gpu(true, SameOnRanks::no))
      ->type_name("FILE");
}

void add_output_options(Declare& d, TrainOptions& o) {
  d.topic(Topic::output);
  d.option("log", o.log, "file of JSON objects, one on each line: start, iteration, epoch, end (rank 0 writes)",
           of_this_rank)
      ->type_name("FILE");
  d.option("tensorboard", o.tensorboard, "directory that receives the same figures as an event file for TensorBoard",
           of_this_rank)
      ->type_name("DIR");
  auto* checkpoint = d.option("checkpoint", o.checkpoint,
                              "file written after every epoch, at the end and when interrupted (rank 0 writes)",
                              {.same = SameOnRanks::all_or_none, .learning = false})
                         ->type_name("FILE");
  d.option("checkpoint-every", o.checkpoint_every,
           "when to write it before the end: epoch; a number of iterations, such as 500; a time, such as 10m (s, m, h)",
           result_does_not_change)
      ->type_name("WHEN")
      ->needs(checkpoint)
      ->check([](const std::string& text) -> std::string {
        try {
          parse_checkpoint_every(text);
        } catch (const Error& error) {
          return error.what();
        }
        return {};
      });
  d.option("keep", o.keep, whole(1, 1000),
           "number of checkpoints to keep: the newest is FILE, the one before it FILE.1, then FILE.2",
           result_does_not_change)
      ->needs(checkpoint);
  d.flag("keep-best", o.keep_best, "also keep the checkpoint of the best test accuracy, as FILE.best",
         result_does_not_change)
      ->needs(checkpoint);
  auto* resume =
      d.flag("resume", o.resume, "continue from the --checkpoint file if it exists; a complete run is evaluated again",
             result_does_not_change)
          ->needs(checkpoint);
  d.flag("overwrite-checkpoint", o.overwrite_checkpoint,
         "start from the beginning even if the --checkpoint file exists, and overwrite it",
         {.same = SameOnRanks::no, .learning = false})
      ->needs(checkpoint)
      ->excludes(resume);
  d.option("eval-every", o.eval_every, whole(0, most_iterations),
           "epochs between evaluations; 0: evaluate only at the end", result_does_not_change);
  d.flag("evaluate-only", o.evaluate_only,
         "do not train: evaluate the weights of --import-weights or of --checkpoint FILE --resume",
         result_does_not_change);
  d.option("export-weights", o.export_weights,
           "safetensors file that receives the weights at the end of the run, with torchvision's names; an existing "
           "file is replaced (rank 0 writes)",
           result_does_not_change)
      ->type_name("FILE");
  d.option("target-accuracy", o.target_accuracy, number(0, 1),
           "test accuracy, 0 to 1; the run reports the time until it is reached", result_does_not_change);
}

}  // namespace

void add_training_options(CLI::App& app, TrainOptions& o, std::vector<OptionRow>* rows) {
  Declare d(app, rows);
  add_run_options(d, o);
  add_data_options(d, o);
  add_model_options(d, o);
  add_optimizer_options(d.topic(Topic::optimizer), o.optimization);
  add_schedule_options(d.topic(Topic::schedule), o.optimization);
  d.option("accumulate", o.accumulate, whole(1, 1 << 20),
           "passes of --batch-size images whose gradients are added up for one step");
  add_batch_norm_options(d.topic(Topic::batch_norm), o.optimization);
  add_parallel_options(d, o);
  add_device_options(d, o);
  add_output_options(d, o);
}

void add_make_dataset(CLI::App& app, MakeDatasetOptions& o) {
  app.add_option("directory", o.directory, "directory of the data set, created if it is missing")->required();
  Declare d(app);
  d.option("train", o.train, whole(1, 1 << 30), "training images");
  d.option("test", o.test, whole(1, 1 << 30), "test images");
  d.option("seed", o.seed, whole(0, any_seed), "seed of the random numbers for all images");
  d.option("format", o.format, one_of({"cifar10", "jpeg"}), "cifar10: its binary files; jpeg: a folder of pictures");
  d.option("image-size", o.image_size, whole(8, 1024), "jpeg: pixels on each side");
}

void add_bench_allreduce(CLI::App& app, BenchAllreduceOptions& o) {
  Declare d(app);
  d.option("sizes", o.sizes,
           fmt::format("sizes to reduce, in bytes; default: {}; with --libraries: {}",
                       fmt::join(default_sizes(false), ","), fmt::join(default_sizes(true), ",")))
      ->delimiter(',');
  auto* names = d.option("communicators", o.communicators, one_of(names_of(communicator_choices())),
                         "names, separated by commas; default: all that can run this job")
                    ->delimiter(',');
  auto* device = d.option("device", o.device, one_of({"cpu", "cuda"}), "memory of the values: cpu, cuda");
  d.flag("libraries", o.libraries,
         "compare the libraries instead: MPI in host memory, CUDA-aware MPI and NCCL, if they are available")
      ->excludes(names)
      ->excludes(device);
  d.flag("share-gpu", o.share_gpu, "let several ranks share one GPU, which NCCL refuses");
  d.option("dtype", o.reduction.dtype, one_of(allreduce_dtypes()), "type that the values are sent in")
      ->transform(type_name_of);
  add_ring_order(d, o.reduction);
  add_reduction_options(d, o.reduction);
  d.option("iterations", o.iterations, whole(1, 1000000), "number of iterations, whose median is printed");
}

}  // namespace paceline::train
