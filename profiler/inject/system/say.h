// SPDX-License-Identifier: Apache-2.0
// Messages of the recorder: one line on standard error. They bypass stdio's buffers, because the program may be using
// them at this moment.
#pragma once

namespace paceline::inject {

// Writes "paceline: TEXT\n" in one system call. A text beyond about 1000 bytes is cut.
__attribute__((format(printf, 1, 2))) void say(const char* format, ...);

}  // namespace paceline::inject
