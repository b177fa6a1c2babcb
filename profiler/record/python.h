// SPDX-License-Identifier: Apache-2.0
// How the interpreters of a job find the hooks for PyTorch (profiler/pytorch).
#pragma once

#include <filesystem>

namespace paceline::record {

// Puts the folder in front of PYTHONPATH, unless it is there. Throws Error if the folder is not installed.
void put_on_python_path(const std::filesystem::path& folder);

}  // namespace paceline::record
