// The row of .pace files in the table of readers.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/importers/pace/import.h"
#include "analysis/importers/reader.h"
#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"
#include "profiler/format/reader.h"

namespace paceline::analysis {
namespace pace_files {

// Opens the files in parallel. A file whose header cannot be read becomes a note.
Trace read(std::span<const std::filesystem::path> paths, const Progress& progress) {
  std::vector<std::optional<PaceEvents>> opened(paths.size());
  std::vector<std::string> failures(paths.size());
  parallel_for(paths.size(), [&](std::size_t i) {
    try {
      opened[i].emplace(format::TraceFileReader(paths[i]));
    } catch (const Error& error) {
      failures[i] = error.what();
    }
  });
  std::vector<PaceEvents> files;
  for (std::optional<PaceEvents>& file : opened) {
    if (file) files.push_back(std::move(*file));
  }
  std::erase(failures, "");
  if (files.empty()) throw Error(failures.front());
  Trace trace = import_pace(std::move(files), progress);
  trace.notes.insert(trace.notes.begin(), failures.begin(), failures.end());
  return trace;
}

}  // namespace pace_files

const TraceReader pace_reader{"pace", format::is_trace_file, pace_files::read};

}  // namespace paceline::analysis
