// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/open.h"

#include <optional>
#include <utility>

#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"
#include "profiler/format/reader.h"

namespace paceline::analysis {

OpenedPaceFiles open_pace_files(std::span<const TraceFile> inputs) {
  std::vector<std::optional<PaceEvents>> opened(inputs.size());
  OpenedPaceFiles result;
  result.failures.resize(inputs.size());
  parallel_for(inputs.size(), [&](std::size_t i) {
    try {
      opened[i].emplace(format::TraceFileReader(inputs[i].path));
    } catch (const Error& error) {
      result.failures[i] = error.what();
    }
  });
  for (std::optional<PaceEvents>& file : opened) {
    if (file) result.files.push_back(std::move(*file));
  }
  std::erase(result.failures, "");
  return result;
}

}  // namespace paceline::analysis
