// Gives back the disk space of files whose processes were killed.
#pragma once

#include "profiler/inject/core/output_file.h"

namespace paceline::inject {

// Called in the parent after a fork.
void note_child();

// A process that a signal ends leaves its whole live area in its file, most of it empty. This makes holes of the empty
// chunks in the files of this process's descendants that do not run any more; the readers see the same bytes. Does nothing
// if this process never forked. `own`: a file in the same directory.
void trim_files_of_killed_children(const OutputFile& own);

}  // namespace paceline::inject
