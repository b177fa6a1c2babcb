// SPDX-License-Identifier: Apache-2.0
// Stacks of Python threads, read while they run: without Python's lock, without a signal, and without a call that the
// interpreter could notice. On the sampler's thread only.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "profiler/inject/sources/stacks/program_memory.h"
#include "profiler/inject/sources/stacks/stack_table.h"

namespace paceline::inject {

// Looks for an interpreter. Call it again from time to time: a program may load or start one later. Says once, on
// standard error, if there is one whose stacks cannot be read.
void look_for_python(ProgramMemory& memory);

// The Python frames of a thread; 0 if it has none. Cost: some 10 µs.
std::uint32_t python_stack(ProgramMemory& memory, pid_t thread);

// A name of what the thread of the last python_stack() waits for that is blocked in the system call futex at this
// address: "Python's lock, held by f" if that is the interpreter's lock and the function f holds it; else 0. Cost: some
// 5 µs.
std::uint32_t holder_of_python_lock(ProgramMemory& memory, Address futex);

// An address in the interpreter's own code; 0 if there is none.
Address python_code();

// In a forked child.
void forget_python();

}  // namespace paceline::inject
