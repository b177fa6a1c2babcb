// The flight recorder (--ring): full chunks stay in the live area, and the oldest make room for new events, until
// something asks for what is there. Then the last seconds become blocks of the file, and it goes on.
//
// As the live area is a part of the file, a program that crashes leaves it all by itself. What later events refer to
// (names, communicators, clock pairs) is written to the file before its chunk is used again; so the file of a long run
// grows by little more than a clock pair a second.
#pragma once

#include <cstdint>

#include "profiler/format/event.h"

namespace paceline::inject {

// After the file was opened: catches the signal that asks for the ring, unless the program has use for it itself.
void start_ring();

// Asks for what is there. Safe in a signal handler; the drain does the work.
void request_trigger(format::TriggerCause cause, std::uint64_t number);

// --- by the drain

// A full chunk: kept as long as there is room.
void hold_chunk(std::uint32_t number);
// Frees the oldest chunks where few are free.
void make_room();
// Writes out what was asked for since the last call.
bool trigger_is_asked_for();
void serve_trigger();
// At the end: of a chunk that still is in use, everything within the last seconds becomes a block, of an older one its
// definitions. False: the disk did not take it.
bool finish_chunk(std::uint32_t number, std::uint64_t now_ticks);

void reset_ring_in_child();

}  // namespace paceline::inject
