// Whether events are recorded now: on while nothing keeps it off. Each change is an event, so that a reader knows what
// the file does not cover.
#pragma once

#include <cstdint>

#include "profiler/format/event.h"

namespace paceline::inject {

// Before the file is opened: what keeps recording off from the beginning. `process_age_ns` counts towards the delay.
void start_control(std::int64_t process_age_ns);

// After it was opened: says so in the file, and opens the gate where nothing keeps it shut.
void announce_control();

// Adds or takes away a reason. Takes a lock; never waits for the drain.
void set_pause(format::PauseReason reason, bool paused);

// Turns the program's own switch and returns whether it was on.
bool set_recording(bool on);

// Time passes: called by the drain. Returns when to call again, CLOCK_MONOTONIC in ns.
std::int64_t run_control(std::int64_t now_ns);

// The program's own switch and its capture range go on in a child; its locks start afresh.
void reset_control_in_child();

}  // namespace paceline::inject
