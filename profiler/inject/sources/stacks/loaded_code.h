// SPDX-License-Identifier: Apache-2.0
// The code that this process has loaded: whose function an instruction belongs to, and how its frame ends. Takes no
// lock of the loader: files are those of /proc/self/maps, and tables are read from memory. On one thread only.
#pragma once

#include <cstdint>

#include "profiler/inject/sources/stacks/frame_rules.h"
#include "profiler/inject/sources/stacks/program_memory.h"

namespace paceline::inject {

// Whose code it is.
enum class CodeOwner : std::uint8_t {
  program,    // of the program, or of a library
  c_library,  // or of the dynamic loader
  recorder,
  run_time,  // code that the program made while it ran: no file, no names, no rules
};

struct LoadedFunction {
  std::uint32_t name = 0, file = 0;  // names; no file: code without one
  CodeOwner owner = CodeOwner::run_time;
  Address code_begin = 0, code_end = 0;  // of the file's code in memory
  bool has_rule = false;
  FrameRule rule;
};

// The function at an instruction; nullptr where no code is. The result is valid to the next call. Cost: 20 ns for an
// instruction that was asked for before; for a new one some 10 µs, and more for the first of its file (FunctionNames).
// Where an instruction is in no known code, and a thread `is_there` beyond doubt, the process's memory is looked at
// again, at most once a second, and more seldom while that finds nothing.
const LoadedFunction* function_at(ProgramMemory& memory, Address instruction, bool is_there);

// Whether two addresses are in the same piece of code, of which the process's memory was read before. Cost: two
// searches.
bool in_one_piece(Address a, Address b);

// Looks, at most once a second, whether libraries came or went, and then forgets whose code was where: another library
// may be at the same addresses. It reads the end of the loader's list, where libraries are added, and every minute the
// whole list. Cost: 10 µs, and 1.5 ms for the 316 libraries of a PyTorch from Debian every minute.
void look_for_other_libraries(ProgramMemory& memory, std::int64_t now_ns);

// In a forked child.
void forget_loaded_code();

}  // namespace paceline::inject
