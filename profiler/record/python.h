// SPDX-License-Identifier: Apache-2.0
// How the interpreters of a job find the hooks for PyTorch (profiler/pytorch).
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace paceline::record {

// Puts the folder in front of PYTHONPATH, unless it is there. Throws Error if the folder is not installed.
void put_on_python_path(const std::filesystem::path& folder);

// The reason why a command does not load the hooks, as the end of a sentence, or "" if none is known. Checks only
// commands that are interpreters themselves: a launcher may start a script with any options.
std::string why_no_hooks(std::span<const std::string> command);

}  // namespace paceline::record
