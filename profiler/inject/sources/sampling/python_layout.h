// SPDX-License-Identifier: Apache-2.0
// Where CPython keeps a thread's frames. The layout of its structures is not part of its interface: up to 3.12 it is
// known for each version, and from 3.13 on the interpreter describes it itself (_Py_DebugOffsets).
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/inject/sources/sampling/python_lines.h"
#include "profiler/inject/sources/stacks/program_memory.h"

namespace paceline::inject {

// Offsets in bytes. 0 where a version does not have the member.
struct PythonLayout {
  struct {
    std::size_t threads;  // the newest thread
  } interpreter;
  struct {
    std::size_t next, interpreter, thread_id, system_thread_id;
    std::size_t frame;    // the innermost frame, or what leads to it:
    std::size_t c_frame;  // of 3.11 and 3.12: `frame` lies in the structure that this points to
  } thread;
  struct {
    std::size_t caller, code, instruction;
    std::size_t owner;  // a byte; 3 or more for frames that the interpreter made, which have no function
  } frame;
  struct {
    std::size_t file, name, first_line, lines;
    std::size_t instructions;  // the first one; 0: frame.instruction is a number and not an address
  } code;
  struct {
    std::size_t ascii_text, other_text;
  } text;
  PythonLineTable line_table;
  std::size_t instruction_bytes;  // what a number of an instruction counts
};

// What all versions share.
inline constexpr std::size_t python_object_type = 8, python_text_length = 16, python_text_state = 32,
                             python_bytes_length = 16, python_bytes_data = 32;

// The interpreter of this process.
struct PythonInterpreter {
  PythonLayout layout{};
  Address (*main_interpreter)() = nullptr;  // of Python: its main interpreter, 0 while there is none
  Address code_type = 0, text_type = 0;
  char version[16] = "";  // "3.11.2"
};

enum class PythonFound : std::uint8_t { none, unsupported, supported };

// Looks for an interpreter in the program. `python` has a version also where that is not supported. Takes the loader's
// lock.
PythonFound find_python(ProgramMemory& memory, PythonInterpreter& python);

}  // namespace paceline::inject
