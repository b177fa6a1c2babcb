// The command line of paceline-train.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/cli/optimization_options.h"
#include "trainer/run/bench.h"

namespace paceline::train {

struct TrainOptions {
  std::string model = "resnet18";
  std::string data;  // directory; empty: synthetic
  bool synthetic = false;
  std::optional<std::int64_t> image_size;              // of synthetic data (32) and of crops from pictures (224)
  std::optional<std::int64_t> classes;                 // of synthetic data (10); others know their own
  std::optional<std::int64_t> resize;                  // CIFAR-10: to so many pixels
  double fraction = 1;                                 // of each class
  std::string augment = "all";                         // or crop, mirror, none: what is drawn for training images
  bool broadcast_data = false;                         // rank 0 reads for all
  std::string sharding = "exact";                      // or equal-length
  std::string on_bad_image = "stop";                   // or skip
  std::size_t loader_workers = 1;                      // threads
  std::size_t train_images = 2048, test_images = 512;  // of synthetic data
  std::int64_t batch_size = 32;                        // per rank
  std::uint64_t epochs = 3;
  std::uint64_t iterations = 0;  // of the whole run; 0: as many as the epochs have
  int threads = 0;               // 0: cores ÷ ranks of this host
  OptimizationOptions optimization;
  std::uint64_t seed = 1;
  std::string dtype = "f32";
  std::string device = "cpu";  // or cuda, auto
  bool share_gpu = false;
  bool cuda_graphs = false, no_fusion = false;
  std::string plan_cache = "default";  // a file; none; default: in the user's cache folder
  bool deterministic = false;
  std::string communicator = "mpi";
  bool communicator_given = false;  // else GPUs have another one
  std::string allreduce_dtype = "f32";
  nccl::Options reduction;                 // its type is allreduce_dtype
  std::string log, checkpoint;             // files; empty: none
  std::string checkpoint_every = "epoch";  // as parse_checkpoint_every() takes it
  unsigned keep = 1;                       // checkpoints
  bool resume = false, overwrite_checkpoint = false;
  std::uint64_t eval_every = 1;  // epochs; 0: at the end only
  double target_accuracy = 0.9;

  std::string updater = "allreduce";
  std::optional<double> bucket_mb;          // overlap: MiB; 25
  std::optional<std::uint64_t> most_ahead;  // parameter_server: iterations; no limit
  std::int64_t accumulate = 1;              // passes of batch_size images an iteration
  std::vector<std::string> faults;          // as parse_faults takes them
  std::string settings;                     // all options that must be the same on every rank: lines of NAME=VALUE
};

struct MakeDatasetOptions {
  std::filesystem::path directory;
  std::size_t train = 2048, test = 512;
  std::uint64_t seed = 1;
  std::string format = "cifar10";  // or jpeg
  int image_size = 64;             // of JPEGs
};

struct CommandLine {
  enum class Action { train, make_dataset, bench_allreduce, exit } action = Action::train;
  int status = 0;  // with Action::exit: --help or --show-config was printed (0), or what is wrong, in one line (2)
  TrainOptions train;
  MakeDatasetOptions make_dataset;
  BenchAllreduceOptions bench_allreduce;
};

// Options come from the command line, then from the file of --config, then from the preset; what is given earlier
// holds. Prints the help text on standard output. What is wrong goes to standard error, once for the whole job: ranks
// other than the first, as the launcher's environment numbers them, stay silent.
CommandLine parse_command_line(int argc, char** argv);

}  // namespace paceline::train
