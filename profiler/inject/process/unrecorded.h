// SPDX-License-Identifier: Apache-2.0
// One line if `paceline record` started a command of which nothing was recorded, for example because the command
// removed the recorder from the environment (env -i, clearenv). Only the process that `paceline record` became reports
// it, of the ranks of a job only the first. With --stage, `paceline record` itself does.
//
// These functions take no lock and no memory, so that they may be called in a signal handler.
#pragma once

namespace paceline::inject {

// Finds out whether this process is that of the command. Called when the library is loaded.
void look_for_command();

// Called when the process ends.
void report_if_unrecorded();

// Called before the process replaces itself by `program`, which may be null.
void report_if_unrecorded_from_now_on(const char* program, char* const* environment);

}  // namespace paceline::inject
