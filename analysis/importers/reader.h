// A reader of one trace format.
//
// To add a format, write one file that defines a TraceReader, and add its line to readers.def. docs/hacking.md has a
// complete example.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "analysis/trace/progress.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct TraceReader {
  std::string_view name;  // of the format, as in Rank::format
  // True if the file has this format. Decides by the content, never by the file's name. Reads a few bytes, throws
  // nothing, and returns false for a file that cannot be read.
  bool (*recognises)(const std::filesystem::path& file);
  // Makes the model of one run from all of its files, at least one; recognises() was true for each. Puts the ranks on
  // one clock. Files that cannot be read are left out and noted (Trace::notes) as long as another one can be read.
  // Throws Error, naming the file and the remedy, where nothing can be read, or where `progress` returned false.
  Trace (*read)(std::span<const std::filesystem::path> files, const Progress& progress);
};

#define PACELINE_READER(name) extern const TraceReader name##_reader;
#include "analysis/importers/readers.def"
#undef PACELINE_READER

}  // namespace paceline::analysis
