// SPDX-License-Identifier: Apache-2.0
// The functions of C and C++ that a thread is in. On the sampler's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "profiler/inject/sources/stacks/program_memory.h"

namespace paceline::inject {

inline constexpr std::size_t stack_copy_bytes = 16 * 1024;

// Where a thread is.
struct NativeRegisters {
  Address instruction = 0, stack_pointer = 0, frame_pointer = 0;
  bool has_frame_pointer = false;
  std::span<const std::byte> stack;  // a copy from stack_pointer on; beyond it the memory itself is read
};

// Adds the functions below `outer`, a stack of Python functions, to the stack table: those that the innermost of them
// called, up to the interpreter's own code, which contains the address `interpreter`. With no outer stack these are all
// functions from the program's first one on. Where the thread is blocked in a system call, the functions of the C
// library that made it are left out. Returns `outer` where nothing is known. Cost: 0.3 µs for a function that was seen
// before, and see function_at().
std::uint32_t native_stack(ProgramMemory& memory, std::uint32_t outer, Address interpreter, bool blocked,
                           const NativeRegisters& registers);

}  // namespace paceline::inject
