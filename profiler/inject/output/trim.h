// SPDX-License-Identifier: Apache-2.0
// Frees the unused disk space of files whose processes were killed.
#pragma once

#include "profiler/inject/buffer/mapped_file.h"

namespace paceline::inject {

// Called in the parent after a fork.
void note_child();

// A process that is ended by a signal leaves its whole live area in its file, most of it empty. This function turns the
// empty chunks in the files of this process's ended descendants into holes; readers see the same bytes. Does nothing if
// this process never forked. `own`: a file in the same directory.
void trim_files_of_killed_children(const MappedFile& own);

}  // namespace paceline::inject
