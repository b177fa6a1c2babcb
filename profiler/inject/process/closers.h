// SPDX-License-Identifier: Apache-2.0
// Functions of the recorder's other libraries that run before the recording ends (event_sink.h).
#pragma once

namespace paceline::inject {

int call_at_close(void (*function)());

// Calls each of them once, in a process that registered them.
void call_closers();

}  // namespace paceline::inject
