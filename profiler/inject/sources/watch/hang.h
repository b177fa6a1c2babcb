// SPDX-License-Identifier: Apache-2.0
// Watches whether the program makes progress: whether iterations and collectives end. If none has ended for --hang
// SECONDS, one line on standard error reports it. If an MPI call has been open for that time, or if an iteration is
// open, this may be a hang: the line names it, and a flight recorder writes out its contents. The same holds for a
// collective of a script, and for a non-blocking collective that the program polls. If none is open, the program
// computes, reads or writes before its first iteration or after its last one: the line only calls it quiet.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/format/event.h"
#include "profiler/inject/sources/flags.h"

namespace paceline::inject {

using format::Slot;

void note_progress_slowly();
void note_iteration_slowly(bool open);

// Called when an iteration began or ended, or a collective ended. The watch starts with the first of them. Cost without
// --hang: one relaxed load.
inline void note_progress() {
  if (is_on(SourceFlag::follows_progress)) [[unlikely]]
    note_progress_slowly();
}
inline void note_iteration(bool open) {
  if (is_on(SourceFlag::follows_progress)) [[unlikely]]
    note_iteration_slowly(open);
}

// True if --hang is given. Valid after the hook `start`.
bool watches_for_hangs();

// How often no progress was noticed, in a rank that hangs or one that is quiet, for which others may wait. The sampler
// records the stacks of all threads each time.
extern std::atomic<std::uint32_t> standstills;

// Called when MPI_Finalize begins: the program has done its work, and a rank may wait there for others that have not.
void end_hang_watch();

// What the watch asks the MPI source. The source sets it when it knows MPI.
struct MpiQuestions {
  // Writes the name of a communicator for messages; without it they show the number.
  void (*write_communicator)(std::uint32_t id, char* out, std::size_t size) = nullptr;
  // The oldest non-blocking collective that is not complete, as its mpi_begin_coll.
  bool (*find_posted)(Slot& head, Slot& extension) = nullptr;
};
void ask_for_hangs(const MpiQuestions& questions);

// Ranges of a script (script/ranges.h) that are collectives: those in this domain with a payload of this schema.
void note_script_collectives(std::uint16_t domain, std::uint32_t schema);

}  // namespace paceline::inject
