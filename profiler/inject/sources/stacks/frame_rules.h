// SPDX-License-Identifier: Apache-2.0
// How to get from a function's frame to its caller's: the call frame information that compilers write into .eh_frame
// (DWARF 5, section 6.4; Linux Standard Base, "Exception Frames"), reduced to what a list of callers needs. x86-64
// only.
#pragma once

#include <cstdint>
#include <optional>

#include "profiler/inject/sources/stacks/program_memory.h"

namespace paceline::inject {

// Where a frame ends at one instruction. The return address lies in the 8 bytes before that end.
struct FrameRule {
  enum class End : std::uint8_t {
    outermost,         // no caller
    stack_pointer,     // rsp + end_offset
    frame_pointer,     // rbp + end_offset
    at_frame_pointer,  // the address stored at rbp + end_offset: functions that align their stack
    plt,               // the linker's entry for a function of another library
    signal,            // the frame that the kernel makes for a signal handler: its registers are in memory
  };
  enum class Saved : std::uint8_t {
    no,                // rbp is as the caller left it
    before_end,        // at the frame's end + saved_offset
    at_frame_pointer,  // at rbp + saved_offset
    lost,              // nobody knows where
  };
  End end = End::outermost;
  Saved frame_pointer = Saved::no;
  std::int32_t end_offset = 0, saved_offset = 0;
};

struct FunctionRule {
  Address function = 0;  // its first instruction
  FrameRule rule;
};

// The rule of an instruction, from a library's table .eh_frame_hdr in memory. Empty where the table does not have the
// instruction, or has it in a way that compilers do not use. Cost: logarithmic in the functions of the library and
// linear in the information of one; some 10 µs.
std::optional<FunctionRule> find_rule(ProgramMemory& memory, Address table, Address instruction);

}  // namespace paceline::inject
