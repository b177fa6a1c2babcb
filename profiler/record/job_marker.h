// One directory, one job: a file `.paceline-job` in the directory names the job that records there and the processes
// that `paceline record` became. It is there before any trace file is, so that of two jobs that start at the same
// moment one is refused.
//
// The file is made by a hard link, which is atomic on network file systems, too. No file locks: where a network file
// system's lock service does not answer, they wait for ever.
#pragma once

#include <filesystem>
#include <string>

#include "profiler/format/reader.h"

namespace paceline::record {

// Makes the directory this job's. Throws Error where another job is still running there: a process that the marker
// names lives, or it is on another host, where nobody can look, and the marker is younger than ten minutes. The marker
// of a job that has ended is replaced.
void mark_job(const std::filesystem::path& directory, const std::string& job);

// Takes the marker away again, where this process alone made it.
void unmark_job(const std::filesystem::path& directory);

// True where the process of the file may still write it. Of another host's process: where the file was changed within
// the last ten minutes.
bool may_still_be_recorded(const format::TraceFile& file);

}  // namespace paceline::record
