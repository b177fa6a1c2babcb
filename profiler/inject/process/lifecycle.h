// SPDX-License-Identifier: Apache-2.0
// The life of a recording: open, fork, close. It knows the order in which the parts of the recorder begin and end, and
// calls the hooks of the event sources (source.h) in between.
#pragma once

#include <cstdint>

#include "profiler/inject/buffer/gate.h"

namespace paceline::inject {

// Opens the file at the first call, whichever event source makes it. Returns true if there is a file. Never opens a
// second file in a process. The calling thread takes no signals while it opens the file. If another thread is opening
// it, the call waits for at most `longest_wait_ns`. children.h describes the children of a recorded process.
inline constexpr std::int64_t wait_in_handlers_ns = 2'000'000'000;
bool open_recorder(std::int64_t longest_wait_ns = wait_in_handlers_ns);
// True while a thread opens the file, after open_recorder() returned false because it waited in vain.
inline bool file_is_being_opened() { return file_state.load(std::memory_order_acquire) == FileState::opening; }

// What a library for communication says of this process, whose file is open. The header keeps a rank that a launcher
// gave, unless `replaces` is true.
void record_rank(std::int32_t rank, std::int32_t ranks, bool replaces);

// Ends the recording: drains all chunks and compacts the file. Later events are ignored. Has no effect when called
// twice or in a child.
void close_recorder();

}  // namespace paceline::inject
