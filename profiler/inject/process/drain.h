// SPDX-License-Identifier: Apache-2.0
// The drain: a thread that sleeps until a chunk is full, writes it out as a compressed block and frees it. It also
// records a clock pair each second and calls the ticks of the event sources. It never spins and takes no signal.
#pragma once

#include <cstdint>

namespace paceline::inject {

// Starts the thread. If the system has no resources for it, recording continues until the live area is full.
// let_drain_close() has the thread call `close`.
void start_drain(void (*close)());

// After this call the drain allocates no more pages of the live area, so that its disk space can be freed. Waits for
// the pages that it is allocating. Threads take the other chunks as they are. Safe in a signal handler.
void stop_populating();

// Called before the process ends at once. The drain ends the recording, and the caller waits for it for the given time
// at most. Returns false if the drain did not end it in time, or if there is no drain. Safe in a signal handler.
bool let_drain_close(std::int64_t longest_ns);

// Writes out every chunk, including those that are still open, and closes the file. A flight recorder keeps the last
// seconds before `end_ticks` (absolute). Called once, at the end.
void finish_drain(std::uint64_t end_ticks);

}  // namespace paceline::inject
