// The subcommands of `paceline`, one file each. add_X declares its options and says what to run when it is chosen.
//
// A command returns the program's exit status, or throws Error for status 1 with one line on standard error. `record`
// is declared in profiler/record/record.h.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string>

namespace paceline::cli {

using Command = std::function<int()>;

// Throws Error if standard output did not take all that was printed. Called after a command's work.
void flush_output();

// Writes a file as `write` fills it. What existed before stays if that fails: a file gets its name when it is whole, and
// devices and pipes are written in place. Throws Error.
void write_output(const std::string& path, const std::function<void(std::FILE*)>& write);

void add_info(CLI::App& app, Command& chosen);
void add_report(CLI::App& app, Command& chosen);
void add_export(CLI::App& app, Command& chosen);

// `train` and `view`: programs of their own beside this one, started in its place.
void add_programs(CLI::App& app, Command& chosen);

}  // namespace paceline::cli
