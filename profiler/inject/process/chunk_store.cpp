// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/process/chunk_store.h"

#include <errno.h>
#include <string.h>

#include <numeric>

#include "profiler/inject/buffer/chunks.h"
#include "profiler/inject/buffer/gate.h"
#include "profiler/inject/buffer/lost.h"
#include "profiler/inject/output/chunk_writer.h"
#include "profiler/inject/process/control.h"
#include "profiler/inject/system/say.h"

namespace paceline::inject {

namespace {

bool disk_complained = false;

// The losses that the chunk records are lost with it. They count as the disk's now, so that all are located.
void lose_chunk(std::uint32_t number) {
  const ChunkSummary chunk = summarize_chunk(number);
  const std::uint64_t before = std::accumulate(chunk.lost.begin(), chunk.lost.end(), std::uint64_t{0});
  note_lost_by_disk(*session.file.chunk_at(number), chunk.first_ticks, chunk.last_ticks, chunk.events + before);
  count_dropped(format::DropCause::disk, chunk.events + before);
  for (std::size_t cause = 0; cause < chunk.lost.size(); ++cause) {
    if (chunk.lost[cause] > 0) count_dropped(static_cast<format::DropCause>(cause), 0 - chunk.lost[cause]);
  }
}

}  // namespace

void start_chunk_store() {
  start_chunk_writer();
  disk_complained = false;
}

void report_lost_events(int error) {
  if (!disk_complained && error != ESTALE) say("%s: events are lost: %s", session.file.path, strerror(error));
  disk_complained = true;
}

void store_chunk(std::uint32_t number, std::uint64_t first_ticks) {
  if (!(first_ticks == 0 ? write_chunk(number) : write_chunk_from(number, first_ticks))) {
    const int error = errno;
    if (error == ESTALE) return;  // cut short: the end of the recording says so
    if (error == EFBIG) {
      set_pause(format::file_is_full, true);
      // No chunk will become free any more, so no thread may wait for one.
      gate.accepting.store(0, std::memory_order_release);
      if (!disk_complained)
        say("%s: recording ends here: the file has its largest size (--max-size)", session.file.path);
      disk_complained = true;
      return;
    }
    // Recording goes on in the memory that there is.
    lose_chunk(number);
    report_lost_events(error);
  } else {
    write_lost_events(false);
  }
  set_free(number);
}

}  // namespace paceline::inject
