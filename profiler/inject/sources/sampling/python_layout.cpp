// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/sampling/python_layout.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <iterator>

namespace paceline::inject {
namespace {

// Printed by offsetof() with the headers of each version on a system of 64 bits; they are equal in all releases of it.
constexpr PythonLayout layout_3_8{
    .interpreter = {.threads = 8},
    .thread = {.next = 8, .interpreter = 16, .thread_id = 176, .system_thread_id = 0, .frame = 24, .c_frame = 0},
    .frame = {.caller = 24, .code = 32, .instruction = 104, .owner = 0},
    .code = {.file = 104, .name = 112, .first_line = 40, .lines = 120, .instructions = 0},
    .text = {.ascii_text = 48, .other_text = 72},
    .line_table = PythonLineTable::increments,
    .instruction_bytes = 1,
};
constexpr PythonLayout layout_3_10 = [] {
  PythonLayout layout = layout_3_8;
  layout.frame.instruction = 96;
  layout.line_table = PythonLineTable::ranges;
  layout.instruction_bytes = 2;
  return layout;
}();
constexpr PythonLayout layout_3_11{
    .interpreter = {.threads = 16},
    .thread = {.next = 8, .interpreter = 16, .thread_id = 152, .system_thread_id = 160, .frame = 8, .c_frame = 56},
    .frame = {.caller = 48, .code = 32, .instruction = 56, .owner = 0},
    .code = {.file = 112, .name = 128, .first_line = 72, .lines = 136, .instructions = 184},
    .text = {.ascii_text = 48, .other_text = 72},
    .line_table = PythonLineTable::locations,
    .instruction_bytes = 1,
};
constexpr PythonLayout layout_3_12{
    .interpreter = {.threads = 72},
    .thread = {.next = 8, .interpreter = 16, .thread_id = 136, .system_thread_id = 144, .frame = 0, .c_frame = 56},
    .frame = {.caller = 8, .code = 0, .instruction = 56, .owner = 70},
    .code = {.file = 112, .name = 128, .first_line = 68, .lines = 136, .instructions = 192},
    .text = {.ascii_text = 40, .other_text = 56},
    .line_table = PythonLineTable::locations,
    .instruction_bytes = 1,
};

// Members of _Py_DebugOffsets, as indices of its numbers: each version adds some in between.
struct DebugOffsets {
  std::size_t threads_head;
  std::size_t thread_next, thread_interpreter, thread_frame, thread_id, thread_system_id;
  std::size_t frame_previous, frame_executable, frame_instruction, frame_owner;
  std::size_t code_file, code_qualified_name, code_lines, code_first_line, code_instructions;
  std::size_t text_size;  // the last one that is read
};
constexpr DebugOffsets debug_offsets[] = {
    {9, 21, 22, 23, 24, 25, 29, 30, 31, 33, 35, 37, 38, 39, 43, 70},  // 3.13
    {9, 24, 25, 26, 27, 28, 32, 33, 34, 36, 40, 42, 43, 44, 48, 80},  // 3.14
    {9, 24, 25, 26, 30, 31, 40, 41, 42, 44, 48, 50, 51, 52, 56, 92},  // 3.15
};
constexpr std::size_t most_debug_offsets = 93;

bool read_debug_offsets(ProgramMemory& memory, Address runtime, const DebugOffsets& in, PythonLayout& layout) {
  constexpr std::size_t cookie = 0, free_threaded = 2;
  std::uint64_t at[most_debug_offsets];
  if (runtime == 0 || !memory.read(runtime, at, (in.text_size + 1) * sizeof at[0])) return false;
  if (memcmp(&at[cookie], "xdebugpy", sizeof at[cookie]) != 0 || at[free_threaded] != 0) return false;
  constexpr std::uint64_t largest = 1 << 20;
  if (!std::all_of(at + in.threads_head, at + in.text_size + 1, [](std::uint64_t offset) { return offset < largest; }))
    return false;
  layout = layout_3_12;
  layout.interpreter.threads = at[in.threads_head];
  layout.thread = {.next = at[in.thread_next],
                   .interpreter = at[in.thread_interpreter],
                   .thread_id = at[in.thread_id],
                   .system_thread_id = at[in.thread_system_id],
                   .frame = at[in.thread_frame],
                   .c_frame = 0};
  layout.frame = {.caller = at[in.frame_previous],
                  .code = at[in.frame_executable],
                  .instruction = at[in.frame_instruction],
                  .owner = at[in.frame_owner]};
  layout.code = {.file = at[in.code_file],
                 .name = at[in.code_qualified_name],
                 .first_line = at[in.code_first_line],
                 .lines = at[in.code_lines],
                 .instructions = at[in.code_instructions]};
  constexpr std::size_t further = sizeof(std::uint64_t) * 2;  // the length in UTF-8, and that text
  layout.text = {.ascii_text = at[in.text_size], .other_text = at[in.text_size] + further};
  return true;
}

// A library that is loaded, but whose names the program does not see.
void* find_hidden_library() {
  char path[4096] = "";
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        if (strstr(info->dlpi_name, "/libpython3") == nullptr || strlen(info->dlpi_name) >= sizeof path) return 0;
        strcpy(static_cast<char*>(out), info->dlpi_name);
        return 1;
      },
      path);
  return path[0] != '\0' ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
}

}  // namespace

PythonFound find_python(ProgramMemory& memory, PythonInterpreter& python) {
  void* library = RTLD_DEFAULT;
  if (dlsym(library, "PyInterpreterState_Main") == nullptr) {
    library = find_hidden_library();
    if (library == nullptr) return PythonFound::none;
  }
  const auto find = [&](const char* name) { return dlsym(library, name); };
  using Version = const char*();
  auto* const main_interpreter = find("PyInterpreterState_Main");
  auto* const version = reinterpret_cast<Version*>(find("Py_GetVersion"));
  if (main_interpreter == nullptr || version == nullptr) return PythonFound::none;
  python.main_interpreter = reinterpret_cast<Address (*)()>(main_interpreter);
  python.code_type = reinterpret_cast<Address>(find("PyCode_Type"));
  python.text_type = reinterpret_cast<Address>(find("PyUnicode_Type"));
  if (python.main_interpreter() == 0) return PythonFound::none;  // it has not started yet
  snprintf(python.version, sizeof python.version, "%.*s", static_cast<int>(strcspn(version(), " ")), version());
  int major = 0, minor = 0;
  if (sscanf(python.version, "%d.%d", &major, &minor) != 2 || major != 3) return PythonFound::unsupported;
  constexpr int oldest = 8, newest_with_table = 12;
  constexpr int newest = newest_with_table + static_cast<int>(std::size(debug_offsets));
  constexpr PythonLayout layouts[] = {layout_3_8, layout_3_8, layout_3_10, layout_3_11, layout_3_12};
  if (minor < oldest || minor > newest || sizeof(void*) != 8) return PythonFound::unsupported;
  if (minor <= newest_with_table) {
    python.layout = layouts[minor - oldest];
  } else if (!read_debug_offsets(memory, reinterpret_cast<Address>(find("_PyRuntime")),
                                 debug_offsets[minor - newest_with_table - 1], python.layout)) {
    return PythonFound::unsupported;
  }
  return PythonFound::supported;
}

}  // namespace paceline::inject
