// SPDX-License-Identifier: Apache-2.0
// A reader of one trace format.
//
// To add a format, write one file that defines a TraceReader, and add its line to readers.def. docs/hacking.md has a
// complete example.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "analysis/trace/progress.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// What the processes in one file become, in formats that leave it open: Chrome's JSON and Perfetto's. PyTorch's JSON is
// one rank in any case.
enum class Processes {
  automatic,  // ranks if their names have the numbers of ranks, else one rank, and a note says so
  ranks,      // a rank each: numbered by their names if all of these have numbers, else in the order of their ids
  one_rank,
};

// A regular, uncompressed file of a run. What was compressed or in an archive was unpacked into a temporary folder.
struct TraceFile {
  std::filesystem::path path;  // to open
  std::string name;            // for messages and Rank::path: "run4/rank-0.json.gz", "run4.tar.gz/rank-0.json"
  Processes processes = Processes::automatic;
};

struct TraceReader {
  std::string_view name;  // of the format, as in Rank::format
  // True if the file has this format. Decides by the content, never by the file's name. Reads a few bytes, throws
  // nothing, and returns false for a file that cannot be read. Of a compressed file it may get only the first MiB; of a
  // SQLite database it always gets everything.
  bool (*recognises)(const TraceFile& file);
  // Makes the model of one run from all of its files, at least one; recognises() was true for each. Files that cannot
  // be read are left out and noted (Trace::notes) as long as another one can be read. Throws Error, naming the file and
  // the remedy, where nothing can be read, or where `progress` returned false.
  //
  // What whole_runs leaves to the loader: a reader that puts the ranks on one clock sets Rank::clock_source and
  // Rank::clock_error_ns. A reader whose format has no means for that leaves clock_source empty and sets
  // Rank::utc_of_zero_ns where the file has it. A reader that does not know a rank's number sets Rank::rank to
  // unknown_rank.
  Trace (*read)(std::span<const TraceFile> files, const Progress& progress);
  // read() numbers all ranks and puts them on one clock; else the loader does, and finds ranks that are given twice.
  bool whole_runs = false;
};

#define PACELINE_READER(name) extern const TraceReader name##_reader;
#include "analysis/importers/readers.def"
#undef PACELINE_READER

}  // namespace paceline::analysis
