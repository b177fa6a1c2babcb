// SPDX-License-Identifier: Apache-2.0
// The command line of paceline-train.
#pragma once

#include "trainer/cli/add_options.h"

namespace paceline::train {

struct CommandLine {
  enum class Action { train, make_dataset, bench_allreduce, exit } action = Action::train;
  int status = 0;  // with Action::exit: 0 after --help, --version or --show-config, 2 after an error message
  TrainOptions train;
  MakeDatasetOptions make_dataset;
  BenchAllreduceOptions bench_allreduce;
};

// Options come from the command line, then from the file of --config, then from the preset; the first source that has
// an option wins. Prints help on standard output and errors on standard error, once for the whole job: only the first
// rank, as the launcher's environment numbers the ranks, prints.
CommandLine parse_command_line(int argc, char** argv);

}  // namespace paceline::train
