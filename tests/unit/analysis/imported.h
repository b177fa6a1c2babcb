// SPDX-License-Identifier: Apache-2.0
// Traces of files made by hand, and what tests ask of them.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/importers/pace/import.h"
#include "tests/unit/analysis/pace_file.h"

namespace paceline::analysis::testing {

inline Trace import(const std::vector<PaceFile>& files) {
  std::vector<format::TraceFile> all;
  for (const PaceFile& file : files) all.push_back(file.file);
  return import_pace(std::move(all));
}

template <typename... Files>
Trace import(const PaceFile& first, const Files&... files) {
  std::vector<format::TraceFile> all{first.file};
  (all.push_back(files.file), ...);
  return import_pace(std::move(all));
}

inline std::vector<std::string> names_of(const Trace& trace, const Track& track) {
  std::vector<std::string> names;
  for (const KindId kind : track.slices.kind) names.push_back(trace.names[trace.kinds[kind].name]);
  return names;
}

inline const Track& track_labelled(const Rank& rank, std::string_view label) {
  for (const Track& track : rank.tracks) {
    if (track.label == label) return track;
  }
  throw std::runtime_error("no track " + std::string(label));
}

}  // namespace paceline::analysis::testing
