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

// The chunks that are ready when recording starts; the drain readies the rest, because touching 16 MiB of a file for
// the first time takes tens of milliseconds.
inline constexpr std::uint32_t first_chunks = 16;

// Touches the chunks `from` up to before `to`, and sets them free.
void populate_chunks(std::uint32_t from, std::uint32_t to);

}  // namespace paceline::inject
