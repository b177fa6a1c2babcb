// What each command of paceline-train takes, with its checks and its help.
#pragma once

#include "trainer/cli/options.h"

namespace CLI {
class App;
}

namespace paceline::train {

void add_training_options(CLI::App& app, TrainOptions& options);
void add_make_dataset(CLI::App& app, MakeDatasetOptions& options);
void add_bench_allreduce(CLI::App& app, BenchAllreduceOptions& options);

}  // namespace paceline::train
