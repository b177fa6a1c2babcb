// SPDX-License-Identifier: Apache-2.0
// How another program asks the processes of a run for the stacks of their threads: it writes a file into the directory
// of their trace files. Each recorder looks for it every two seconds, and where the file has another time of change
// than before, it records the stacks of all threads once, with the period 0 (events::StackSample). Who wrote the file
// removes it. A file that is there before a recording begins is no request to it.
#pragma once

namespace paceline::format {

inline constexpr char stack_request_name[] = ".paceline-stacks";

}  // namespace paceline::format
