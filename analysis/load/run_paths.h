// SPDX-License-Identifier: Apache-2.0
// A RUN as the user gives it: one path, or the directories of one job that wrote into a directory on each host.
#pragma once

#include <concepts>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/importers/reader.h"

namespace paceline::analysis {

struct RunPaths {
  std::vector<std::filesystem::path> paths;  // at least one; if there are several, all are directories
  std::string note = {};                     // why several paths are one run, for people; "" for one path
  Processes processes = Processes::automatic;

  template <std::convertible_to<std::filesystem::path> Path>
  RunPaths(Path&& path) : paths{std::filesystem::path(std::forward<Path>(path))} {}
  explicit RunPaths(const std::vector<std::string>& given) : paths(given.begin(), given.end()) {}

  // As the user gave it: "host1 host2".
  std::string name() const;
};

// The choice of this name: "auto", "ranks" or "one"; nothing for any other text.
std::optional<Processes> processes_named(std::string_view name);

// The runs among these paths, in their order. Directories of .pace files are one run where their headers have the same
// jobs and, for each job, one number of ranks and different ranks. Every other path is a run of its own, also one that
// cannot be read. Cost: the headers of all .pace files; nothing where one path is given.
std::vector<RunPaths> runs_among(const std::vector<std::string>& paths, Processes processes = Processes::automatic);

// The run that all of these paths hold. Throws Error if they hold several.
RunPaths one_run(const std::vector<std::string>& paths, Processes processes = Processes::automatic);

}  // namespace paceline::analysis
