// The one recording of this process: its file and its chunks' whereabouts. Shared by the writers and the drain.
#pragma once

#include <sys/types.h>

#include <atomic>

#include "profiler/inject/chunk_set.h"
#include "profiler/inject/output_file.h"

namespace paceline::inject {

struct Session {
  OutputFile file;
  ChunkSet free;                         // zeroed, ready to be taken
  ChunkSet full;                         // waiting for the drain
  std::atomic<std::uint32_t> unused{0};  // chunks from here on were never in use; they are ready too, but slow at first
  pid_t owner = 0;
};
extern Session session;

// A chunk that was never in use, or ChunkSet::none. Lock-free.
std::uint32_t take_unused_chunk();

// Gives memory to a chunk that was never in use, and sets it free; false if there is none. Touching 16 MiB of a file
// for the first time takes tens of milliseconds: the drain does it while the program goes on.
bool populate_chunk();

// In a forked child: MPI is not to be asked there, and locks of the parent's threads are let go.
void reset_mpi_in_child();
void reset_nvtx_in_child();

}  // namespace paceline::inject
