// The subcommands of `paceline`, one file each. add_X declares its options and says what to run when it is chosen.
//
// A command returns the program's exit status, or throws Error for status 1 with one line on standard error. `record`
// is declared in profiler/record/record.h.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace paceline::cli {

using Command = std::function<int()>;

void add_info(CLI::App& app, Command& chosen);
void add_report(CLI::App& app, Command& chosen);
void add_export(CLI::App& app, Command& chosen);

// `train` and `view`: programs of their own beside this one, started in its place.
void add_programs(CLI::App& app, Command& chosen);

}  // namespace paceline::cli
