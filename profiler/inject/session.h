// The one recording of this process: its file and its chunks' whereabouts. Shared by the writers and the drain.
#pragma once

#include <sys/types.h>

#include "profiler/inject/chunk_set.h"
#include "profiler/inject/output_file.h"

namespace paceline::inject {

struct Session {
  OutputFile file;
  ChunkSet free;  // zeroed, ready to be taken
  ChunkSet full;  // waiting for the drain
  pid_t owner = 0;
};
extern Session session;

}  // namespace paceline::inject
