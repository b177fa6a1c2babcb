// SPDX-License-Identifier: Apache-2.0
// Whether events are recorded now. Recording is on while there is no reason to pause. Each change is an event, so that
// a reader knows which times the file does not cover.
#pragma once

#include <cstdint>

#include "profiler/format/event.h"

namespace paceline::inject {

// Called before the file is opened: takes --delay and --duration into account. The delay counts from the start of the
// process, which is `process_age_ns` old.
void start_control(std::int64_t process_age_ns);

// Called after the file was opened: records the state, and opens the gate if there is no reason to pause.
void announce_control();

// Adds or removes a reason to pause. Takes a lock and never waits for the drain.
void set_pause(format::PauseReason reason, bool paused);

// Sets the program's own switch and returns its previous state.
bool set_recording(bool on);

// Called by the drain, because time has passed. Returns when to call it again (CLOCK_MONOTONIC, ns).
std::int64_t run_control(std::int64_t now_ns);

// In a forked child: resets the lock. The reasons to pause stay as they were in the parent.
void reset_control_in_child();

}  // namespace paceline::inject
