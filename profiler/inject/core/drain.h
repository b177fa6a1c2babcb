// The drain: one thread that sleeps until a chunk is full, writes it out as a compressed block, and sets it free. It
// also records a clock pair each second. It never spins and takes no signal.
#pragma once

#include <cstdint>

namespace paceline::inject {

// Without a thread (no resources) recording goes on until the live area is full.
void start_drain();

// True while there is a thread that sets chunks free.
bool drain_runs();

// Lock-free; a system call only where the drain sleeps.
void wake_drain();

// Before the process ends at once: has the drain end the recording, and waits for it as long as given. False: it did
// not in time, or there is no drain. Safe in a signal handler.
bool let_drain_close(std::int64_t longest_ns);

// Writes out every chunk, also those still open, and closes the file; a flight recorder counts its time back from
// `end_ticks`, absolute. Called once, at the end.
void finish_drain(std::uint64_t end_ticks);
bool is_drain_thread();

}  // namespace paceline::inject
