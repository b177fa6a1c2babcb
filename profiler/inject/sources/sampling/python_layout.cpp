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

// The members of 3.13's _Py_DebugOffsets, as indices of its numbers.
enum DebugOffset : std::size_t {
  cookie = 0,
  free_threaded = 2,
  threads_head = 9,
  thread_next = 21,
  thread_interpreter = 22,
  thread_frame = 23,
  thread_id = 24,
  thread_system_id = 25,
  frame_previous = 29,
  frame_executable = 30,
  frame_instruction = 31,
  frame_owner = 33,
  code_file = 35,
  code_qualified_name = 37,
  code_lines = 38,
  code_first_line = 39,
  code_instructions = 43,
  text_size = 70,
  debug_offsets = 71,
};

bool read_debug_offsets(ProgramMemory& memory, Address runtime, PythonLayout& layout) {
  std::uint64_t at[debug_offsets];
  if (runtime == 0 || !memory.read(runtime, at, sizeof at)) return false;
  if (memcmp(&at[cookie], "xdebugpy", sizeof at[cookie]) != 0 || at[free_threaded] != 0) return false;
  constexpr std::uint64_t largest = 1 << 20;
  if (!std::all_of(std::begin(at) + threads_head, std::end(at), [](std::uint64_t offset) { return offset < largest; }))
    return false;
  layout = layout_3_12;
  layout.interpreter.threads = at[threads_head];
  layout.thread = {.next = at[thread_next],
                   .interpreter = at[thread_interpreter],
                   .thread_id = at[thread_id],
                   .system_thread_id = at[thread_system_id],
                   .frame = at[thread_frame],
                   .c_frame = 0};
  layout.frame = {.caller = at[frame_previous],
                  .code = at[frame_executable],
                  .instruction = at[frame_instruction],
                  .owner = at[frame_owner]};
  layout.code = {.file = at[code_file],
                 .name = at[code_qualified_name],
                 .first_line = at[code_first_line],
                 .lines = at[code_lines],
                 .instructions = at[code_instructions]};
  constexpr std::size_t further = sizeof(std::uint64_t) * 2;  // the length in UTF-8, and that text
  layout.text = {.ascii_text = at[text_size], .other_text = at[text_size] + further};
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
  constexpr int oldest = 8, newest_with_table = 12, newest = 13;
  constexpr PythonLayout layouts[] = {layout_3_8, layout_3_8, layout_3_10, layout_3_11, layout_3_12};
  if (minor < oldest || minor > newest || sizeof(void*) != 8) return PythonFound::unsupported;
  if (minor <= newest_with_table) {
    python.layout = layouts[minor - oldest];
  } else if (!read_debug_offsets(memory, reinterpret_cast<Address>(find("_PyRuntime")), python.layout)) {
    return PythonFound::unsupported;
  }
  return PythonFound::supported;
}

}  // namespace paceline::inject
