// SPDX-License-Identifier: Apache-2.0
// The options of each command of paceline-train: an option is declared once, with its check, its help text and
// everything else that is known about it (option_row.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/cli/option_row.h"
#include "trainer/run/bench.h"
#include "trainer/run/train_options.h"

namespace CLI {
class App;
}

namespace paceline::train {

class Declare;

struct MakeDatasetOptions {
  std::filesystem::path directory;
  std::size_t train = 2048, test = 512;  // images
  std::uint64_t seed = 1;
  std::string format = "cifar10";  // or jpeg
  int image_size = 64;             // pixels on each side, for jpeg
};

// rows: gets a row for each option (option_table.h).
void add_training_options(CLI::App& app, TrainOptions& options, std::vector<OptionRow>* rows = nullptr);

// Parts of the training options.
void add_optimizer_options(Declare& declare, OptimizationOptions& options);
void add_schedule_options(Declare& declare, OptimizationOptions& options);
void add_batch_norm_options(Declare& declare, OptimizationOptions& options);

void add_make_dataset(CLI::App& app, MakeDatasetOptions& options);
void add_bench_allreduce(CLI::App& app, BenchAllreduceOptions& options);

// After parsing: fills the fields that several options decide together. Returns an error message, or an empty string.
std::string complete(OptimizationOptions& options);

}  // namespace paceline::train
