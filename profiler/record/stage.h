// --stage: the files of a recording are written on a local disk, and lie in the output directory at the end. The
// recorder moves its own file when the program ends; what a killed program left is moved here, by the launcher, which
// waits for the command.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace paceline::record {

// A directory of its own below `stage`, made now. Throws Error where it cannot be made.
std::filesystem::path make_stage(const std::filesystem::path& stage);

// Moves the trace files that are left into `output`, and removes `stage` where it is empty then. A file that cannot be
// moved, or that a process still writes, stays; each is said in one line on standard error. Never replaces a file, but
// with `force`.
void empty_stage(const std::filesystem::path& stage, const std::filesystem::path& output, bool force);

// Runs the command as a child, passes on the signals that reach this process, waits for its end. Returns what waitpid
// gives, or -1 and errno where it could not be started.
int run_and_wait(const std::vector<char*>& arguments);

// Ends this process as the command ended: with its exit status, or by the same signal.
[[noreturn]] void end_alike(int wait_status);

}  // namespace paceline::record
