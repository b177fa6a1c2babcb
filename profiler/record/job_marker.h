// SPDX-License-Identifier: Apache-2.0
// Ensures that one directory holds one job. A file `.paceline-job` in the directory names the job that records there
// and the processes that `paceline record` became. It exists before any trace file, so that one of two jobs that start
// at the same moment is rejected.
//
// The file is created by a hard link, which is atomic also on network file systems. File locks are not used, because
// they wait without end if the lock service of a network file system does not answer.
#pragma once

#include <filesystem>
#include <string>

#include "profiler/format/reader.h"

namespace paceline::record {

// Marks the directory for this job. Throws Error if another job is still running there: a process in the marker is
// alive. A process on another host or in another PID namespace cannot be checked: there the job's traces in the
// directory count (format/liveness.h), and before the first one the marker's age, which must be below ten minutes. The
// marker of a job that has ended is replaced.
void mark_job(const std::filesystem::path& directory, const std::string& job);

// Removes the marker again if only this process is in it.
void unmark_job(const std::filesystem::path& directory);

// True unless it is certain that the process of the file does not write it any more (format/liveness.h).
bool may_still_be_recorded(const format::TraceFile& file);

}  // namespace paceline::record
