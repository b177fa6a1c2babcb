// SPDX-License-Identifier: Apache-2.0
// `paceline record [options] -- CMD …`: runs CMD with the recorder attached.
//
// The command replaces this process (exec), so signals reach it directly and its exit status is the job's. No other
// process remains: the recorder inside the command reads its settings from the environment (environment.h). Only with
// --stage does this process wait, to move the files afterwards.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "profiler/record/options.h"

namespace paceline::record {

// Declares the subcommand `record`. If the user chooses it, sets `chosen` to the function that runs it.
void add_record(CLI::App& app, std::function<int()>& chosen);

// Prepares the output directory and the environment, then becomes the command. Returns only on failure, after one line
// on standard error: 125 = the recorder itself failed, 126 = the command cannot be run, 127 = it is not found.
int run_recorded(const RecordOptions& options);

}  // namespace paceline::record
