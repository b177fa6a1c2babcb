// SPDX-License-Identifier: Apache-2.0
// Reads one JSON file into a rank, in pieces that are parsed side by side.
#pragma once

#include <cstddef>
#include <filesystem>

#include "analysis/importers/kineto/header.h"
#include "analysis/importers/kineto/kineto_rank.h"
#include "analysis/importers/reader.h"
#include "analysis/trace/progress.h"

namespace paceline::analysis::kineto {

struct FileSummary {
  Header header;
  bool closed = false;  // the array of events came to its end
};

inline constexpr std::size_t usual_piece_bytes = std::size_t{4} << 20;

// Reads the file into the rank, all but KinetoRank::finish(). `threads` pieces of about `piece_bytes` are parsed at a
// time. Memory: the model, and two times `threads` pieces. Throws Error where the file cannot be read, or has no array
// of events.
FileSummary read_file(const TraceFile& file, KinetoRank& rank, std::size_t threads, ProgressCounter& progress,
                      std::size_t piece_bytes = usual_piece_bytes);

// True if the file looks like a trace in Chrome's format: its first bytes decide.
bool looks_like_chrome_trace(const std::filesystem::path& path);

}  // namespace paceline::analysis::kineto
