// `paceline record [options] -- CMD …`: runs CMD with the recorder attached.
//
// The command replaces this process (exec), so signals reach it directly and its exit status is the job's. Nothing is
// left behind that could disturb it: the recorder inside learns all it needs from the environment (environment.h). Only
// with --stage this process waits, to move what the command left.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "profiler/record/options.h"

namespace paceline::record {

// Declares the subcommand `record`; where it is chosen, sets `chosen` to what runs it.
void add_record(CLI::App& app, std::function<int()>& chosen);

// Prepares the output directory and the environment, then becomes the command. Returns only on failure, after one line
// on standard error: 125 = the recorder itself failed, 126 = the command cannot be run, 127 = it is not found.
int run_recorded(const RecordOptions& options);

}  // namespace paceline::record
