// SPDX-License-Identifier: Apache-2.0
// The row of .pace files in the table of readers.
#include <utility>

#include "analysis/importers/pace/import.h"
#include "analysis/importers/pace/open.h"
#include "analysis/importers/reader.h"
#include "profiler/format/error.h"
#include "profiler/format/reader.h"

namespace paceline::analysis {
namespace pace_files {

bool recognises(const TraceFile& file) { return format::is_trace_file(file.path); }

// A file whose header cannot be read becomes a note.
Trace read(std::span<const TraceFile> inputs, const Progress& progress) {
  OpenedPaceFiles opened = open_pace_files(inputs);
  if (opened.files.empty()) throw Error(opened.failures.front());
  Trace trace = import_pace(std::move(opened.files), progress);
  trace.notes.insert(trace.notes.begin(), opened.failures.begin(), opened.failures.end());
  return trace;
}

}  // namespace pace_files

const TraceReader pace_reader{"pace", pace_files::recognises, pace_files::read, true};

}  // namespace paceline::analysis
