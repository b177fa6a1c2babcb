// The one recording of this process: its file and its chunks' whereabouts (chunks.h). Shared by the writers and the
// drain.
#pragma once

#include <sys/types.h>

#include <atomic>

#include "profiler/inject/core/chunk_set.h"
#include "profiler/inject/core/output_file.h"

namespace paceline::inject {

struct Session {
  OutputFile file;
  ChunkSet free;                          // whole units, zeroed, ready to be taken
  PageSet free_pages;                     // pages of divided units, the same
  PageSet reserve;                        // pages of the reserve, the same
  PageSet full;                           // chunks that wait for the drain, by their first page
  std::atomic<std::uint32_t> unused{0};   // units from here on were never in use; they are ready too, but slow at first
  std::atomic<std::uint32_t> freed{0};    // counts what was set free; threads wait on it
  std::atomic<std::uint32_t> waiting{0};  // how many threads do
  pid_t owner = 0;
};
extern Session session;

// In a forked child: MPI is not to be asked there, and locks of the parent's threads are let go.
void reset_mpi_in_child();
void reset_nvtx_in_child();

}  // namespace paceline::inject
