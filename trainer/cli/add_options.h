// The options of each command of paceline-train, with their checks and help texts. cli/option_table.h has everything
// else that is known about an option.
#pragma once

#include <string>

#include "trainer/cli/options.h"

namespace CLI {
class App;
}

namespace paceline::train {

void add_training_options(CLI::App& app, TrainOptions& options);
void add_optimization_options(CLI::App& app, OptimizationOptions& options);  // part of the training options
void add_make_dataset(CLI::App& app, MakeDatasetOptions& options);
void add_bench_allreduce(CLI::App& app, BenchAllreduceOptions& options);

// After parsing: fills the fields that several options decide together. Returns an error message, or an empty string.
std::string complete(OptimizationOptions& options);

}  // namespace paceline::train
