// SPDX-License-Identifier: Apache-2.0
// --stage: the files of a recording are written to a local disk and moved to the output directory at the end. The
// recorder moves its own file when the program ends. `paceline record` waits for the command and moves the files of
// killed programs. If `paceline record` is killed as well, a note in the output directory names the local directory.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace paceline::record {

// Creates a new directory below `stage`. Throws Error if that fails.
std::filesystem::path make_stage(const std::filesystem::path& stage);

// Writes the note into `output`. Throws Error if that fails.
void note_stage(const std::filesystem::path& stage, const std::filesystem::path& output);

// Moves what notes in `output` name and no process writes any more, and returns a line for each such directory: what
// was moved, or where files remain and why, such as on another host. Empty if there are no notes, and for directories
// whose `paceline record` still runs. Cost: reads the names in `output`.
std::vector<std::string> collect_stages(const std::filesystem::path& output);

// Moves the remaining trace files into `output`, and removes `stage` and the note if it is then empty. A file that
// cannot be moved, or that a process still writes, stays, and one line on standard error reports it. Replaces files
// only with `force`.
void empty_stage(const std::filesystem::path& stage, const std::filesystem::path& output, bool force);

// Runs the command as a child, forwards the signals that this process receives, and waits for the child. Returns the
// status of waitpid(), or -1 and errno if the command could not be started.
int run_and_wait(const std::vector<char*>& arguments);

// Ends this process like the command: with its exit status, or by the same signal.
[[noreturn]] void end_alike(int wait_status);

}  // namespace paceline::record
