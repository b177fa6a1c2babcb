// SPDX-License-Identifier: Apache-2.0
// Opens the .pace files of a run.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/importers/pace/events.h"
#include "analysis/importers/reader.h"

namespace paceline::analysis {

struct OpenedPaceFiles {
  std::vector<PaceEvents> files;      // in the order of the inputs
  std::vector<std::string> failures;  // of the others: one line each
};

// Opens the files in parallel and reads their headers. A file whose header cannot be read becomes a failure. Does not
// throw for bad files.
OpenedPaceFiles open_pace_files(std::span<const TraceFile> inputs);

}  // namespace paceline::analysis
