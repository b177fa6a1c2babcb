// SPDX-License-Identifier: Apache-2.0
// What the readers of traces in SQLite databases share.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "analysis/importers/reader.h"
#include "analysis/importers/sqlite/database.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis {

// Called with the share that is done, 0 to 1. Throws Error where the work is to stop.
using ShareDone = std::function<void(double)>;

// Reads the databases of a run, several at a time, into the ranks of `run`. `read` reads one, by its place among the
// files, and returns its notes. Files that `read` throws Error for are left out and noted. `without_events` ends the
// message for files in which there is no event at all: "the export has no events: …".
Trace read_databases(
    std::span<const TraceFile> files, const Progress& progress, TraceBuilder& run, std::string_view without_events,
    const std::function<std::vector<std::string>(std::size_t file, Database& database, const ShareDone& done)>& read);

// Runs the parts one by one.
void run_parts(std::span<const std::function<void()>> parts, const ShareDone& done);

// Sets Rank::damaged where a table of the database could not be read to its end.
void note_damage(const Database& database, Rank& rank);

}  // namespace paceline::analysis
