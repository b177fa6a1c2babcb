// Opens a RUN: a directory of rank files, one file, or a foreign trace; the format is recognised from the content.
#pragma once

#include <filesystem>
#include <functional>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

// Called now and then with the share done, 0 to 1; returning false stops the load (throws Error).
using Progress = std::function<bool(double)>;

// Throws Error, naming the path and the remedy, where nothing can be read. Ranks are put on one clock.
Trace load_run(const std::filesystem::path& path, const Progress& progress = {});

}  // namespace paceline::analysis
