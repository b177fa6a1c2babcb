// --stage: the files of a recording are written to a local disk and moved to the output directory at the end. The
// recorder moves its own file when the program ends. `paceline record` waits for the command and moves the files of
// killed programs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace paceline::record {

// Creates a new directory below `stage`. Throws Error if that fails.
std::filesystem::path make_stage(const std::filesystem::path& stage);

// Moves the remaining trace files into `output`, and removes `stage` if it is then empty. A file that cannot be moved,
// or that a process still writes, stays, and one line on standard error reports it. Replaces files only with `force`.
void empty_stage(const std::filesystem::path& stage, const std::filesystem::path& output, bool force);

// Runs the command as a child, forwards the signals that this process receives, and waits for the child. Returns the
// status of waitpid(), or -1 and errno if the command could not be started.
int run_and_wait(const std::vector<char*>& arguments);

// Ends this process like the command: with its exit status, or by the same signal.
[[noreturn]] void end_alike(int wait_status);

}  // namespace paceline::record
