// Watches whether the program makes progress: whether iterations and collectives end. If none has ended for --hang
// SECONDS, one line on standard error reports it. If an MPI call has been open for that time, or if an iteration is
// open, this may be a hang: the line names it, and a flight recorder writes out its contents. If neither is open, the
// program computes, reads or writes before its first iteration or after its last one: the line only calls it quiet.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/inject/sources/flags.h"

namespace paceline::inject {

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

// Called when MPI_Finalize begins: the program has done its work, and a rank may wait there for others that have not.
void end_hang_watch();

// Sets the function that writes the name of a communicator for messages. The MPI source sets it; without it messages
// show the number.
using WriteCommunicator = void (*)(std::uint32_t id, char* out, std::size_t size);
void name_communicators_by(WriteCommunicator write);

}  // namespace paceline::inject
