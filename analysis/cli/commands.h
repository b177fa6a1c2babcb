// SPDX-License-Identifier: Apache-2.0
// The subcommands of `paceline`, one file each. add_X declares the options of X and sets `chosen` when the user chooses
// X.
//
// A command returns the exit status of the program. It throws Error for status 1, and the message becomes one line on
// standard error. `record` is declared in profiler/record/record.h.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace paceline::analysis {
class ReadingProcesses;
}

namespace paceline::cli {

using Command = std::function<int()>;

// Flushes standard output. Throws Error if some of the output could not be written. Called after a command's work.
void flush_output();

// Writes a file with the contents that `write` gives it. If that fails, an existing file stays as it was, because the
// new file gets its name when it is complete. Devices and pipes are written in place. Throws Error.
void write_output(const std::string& path, const std::function<void(std::FILE*)>& write);

// The same for a file or folder that `make` makes under the name that it is given. A folder never takes the place of
// what exists. Throws Error.
void make_output(const std::string& path, const std::function<void(const std::filesystem::path&)>& make);

// Writes the text as the file at `path`, or to standard output where the path is empty. Throws Error.
void print_or_write(std::string_view text, const std::string& path);

void add_watch(CLI::App& app, Command& chosen);
void add_info(CLI::App& app, Command& chosen);
// `processes`: those that share the work, in the program that mpirun starts for it (paceline-report-mpi); else null.
void add_report(CLI::App& app, Command& chosen, analysis::ReadingProcesses* processes = nullptr);
void add_compare(CLI::App& app, Command& chosen);
void add_history(CLI::App& app, Command& chosen);
void add_export(CLI::App& app, Command& chosen);
void add_whatif(CLI::App& app, Command& chosen);
void add_query(CLI::App& app, Command& chosen);

// `train` and `view`: separate programs in the same directory, which replace this one.
void add_programs(CLI::App& app, Command& chosen);

}  // namespace paceline::cli
