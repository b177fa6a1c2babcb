// SPDX-License-Identifier: Apache-2.0
// The flight recorder (--ring): full chunks stay in the live area, and the oldest chunks make room for new events,
// until a trigger asks for the contents. Then the last seconds become blocks of the file, and the flight recorder
// continues.
//
// The live area is a part of the file, so a program that crashes leaves its last seconds without further work. Events
// that later events refer to (names, communicators, clock pairs) are written to the file before their chunk is reused.
// The file of a long run therefore grows by little more than a clock pair per second.
#pragma once

#include <cstdint>

#include "profiler/format/event.h"

namespace paceline::inject {

// Called after the file was opened. Catches the signal that triggers the ring, unless the program uses that signal.
void start_ring();

// Asks for the contents of the ring. Safe in a signal handler; the drain does the work.
void request_trigger(format::TriggerCause cause, std::uint64_t number);

// --- called by the drain

// Keeps a full chunk as long as there is room.
void hold_chunk(std::uint32_t number);
// Frees the oldest chunks if few chunks are free.
void make_room();
// Writes out the contents if a trigger came since the last call.
bool trigger_is_asked_for();
void serve_trigger();
// Called at the end. Writes the chunk's events of the last seconds as a block, and only the definitions before. Returns
// false if the disk did not take it.
bool finish_chunk(std::uint32_t number, std::uint64_t now_ticks);

void reset_ring_in_child();

}  // namespace paceline::inject
