// SPDX-License-Identifier: Apache-2.0
// The recording of this process: its file and the state of its chunks (chunks.h). Writers and the drain share it.
#pragma once

#include <sys/types.h>

#include <atomic>

#include "profiler/inject/buffer/chunk_set.h"
#include "profiler/inject/buffer/mapped_file.h"

namespace paceline::inject {

struct Session {
  MappedFile file;
  ChunkSet free;                         // whole units, zeroed, ready to be taken
  PageSet free_pages;                    // pages of divided units, the same
  PageSet reserve;                       // pages of the reserve, the same
  PageSet full;                          // chunks that wait for the drain, by their first page
  ChunkSet allocated;                    // units that have space on the disk; no other unit may be read or written
  std::atomic<std::uint32_t> unused{0};  // units from here on were never used; they can be taken, but are slow at first
  std::atomic<std::uint32_t> reserve_end{0};  // units of the reserve from here on were never used
  std::atomic<int> disk_error{0};             // not 0: no further unit gets space, for this reason (errno)
  std::atomic<std::uint32_t> freed{0};        // number of chunks that were freed; threads wait on it
  std::atomic<std::uint32_t> waiting{0};      // number of threads that wait
  pid_t owner = 0;
};
extern Session session;

}  // namespace paceline::inject
