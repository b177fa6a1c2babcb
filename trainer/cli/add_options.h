// The options of each command of paceline-train, with their checks and help texts. cli/option_table.h has everything
// else that is known about an option.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "trainer/run/bench.h"
#include "trainer/run/train_options.h"

namespace CLI {
class App;
}

namespace paceline::train {

struct MakeDatasetOptions {
  std::filesystem::path directory;
  std::size_t train = 2048, test = 512;  // images
  std::uint64_t seed = 1;
  std::string format = "cifar10";  // or jpeg
  int image_size = 64;             // pixels on each side, for jpeg
};

void add_training_options(CLI::App& app, TrainOptions& options);
void add_optimization_options(CLI::App& app, OptimizationOptions& options);  // part of the training options
void add_make_dataset(CLI::App& app, MakeDatasetOptions& options);
void add_bench_allreduce(CLI::App& app, BenchAllreduceOptions& options);

// After parsing: fills the fields that several options decide together. Returns an error message, or an empty string.
std::string complete(OptimizationOptions& options);

}  // namespace paceline::train
