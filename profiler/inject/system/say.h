// The recorder's voice: one line on standard error, never through stdio's buffers (the program may be inside them).
#pragma once

namespace paceline::inject {

// Writes "paceline: TEXT\n".
__attribute__((format(printf, 1, 2))) void say(const char* format, ...);

}  // namespace paceline::inject
