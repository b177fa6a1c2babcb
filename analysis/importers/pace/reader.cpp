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

bool recognises(const TraceFile& file) { return format::is_trace_file(file.path); }

// Opens the files in parallel. A file whose header cannot be read becomes a note.
Trace read(std::span<const TraceFile> inputs, const Progress& progress) {
  std::vector<std::optional<PaceEvents>> opened(inputs.size());
  std::vector<std::string> failures(inputs.size());
  parallel_for(inputs.size(), [&](std::size_t i) {
    try {
      opened[i].emplace(format::TraceFileReader(inputs[i].path));
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

const TraceReader pace_reader{"pace", pace_files::recognises, pace_files::read, true};

}  // namespace paceline::analysis
