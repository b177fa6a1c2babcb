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

// Writes out every chunk, also those still open, and closes the file; a flight recorder counts its time back from
// `end_ticks`, absolute. Called once, at the end.
void finish_drain(std::uint64_t end_ticks);

}  // namespace paceline::inject
