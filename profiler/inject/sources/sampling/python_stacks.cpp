// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/sampling/python_stacks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "profiler/inject/buffer/names.h"
#include "profiler/inject/process/children.h"
#include "profiler/inject/sources/sampling/python_layout.h"
#include "profiler/inject/sources/stacks/number_table.h"
#include "profiler/inject/system/say.h"

namespace paceline::inject {
namespace {

PythonInterpreter python;
PythonFound found = PythonFound::none;

// A stack deeper than this keeps its innermost frames.
constexpr std::size_t most_frames = 512;
constexpr std::size_t code_bytes = 152;  // of a code object: its members up to the last that is needed

// What is kept about a code object, by its address. The interpreter may free it and put another one there, so the
// members that say what it is are compared each time.
struct Code {
  Address at = 0, file = 0, name = 0, lines = 0;
  std::uint32_t first_line = 0;
  std::uint32_t number = 0;  // never the same for two objects
  std::uint32_t function_name = 0, file_name = 0;
  std::uint32_t as_holder = 0;  // the name of Python's lock while this function holds it
};
constexpr std::size_t most_code = 1 << 14;
Code* codes = nullptr;  // by a hash of the address: a later object takes the place of an earlier one
std::uint32_t latest_code = 0;
NumberTable lines_of_instructions(std::size_t{1} << 16);  // by the code's number and the instruction: line + 1

struct Frame {
  Address code = 0;
  std::uint64_t instruction = 0;
};
Frame frames[most_frames];
Address sampled_thread = 0;  // Python's structure for the thread whose stack was read last
std::byte heads[most_frames][code_bytes];
Address addresses[most_frames];

template <class Value>
Value value_at(const std::byte* bytes, std::size_t offset) {
  Value value;
  memcpy(&value, bytes + offset, sizeof value);
  return value;
}

// The text of a str object as a name; 0 if there is none at the address.
std::uint32_t read_text(ProgramMemory& memory, Address object) {
  constexpr std::size_t longest = 1024;
  std::byte head[python_text_state + sizeof(std::uint32_t)];
  if (!memory.read(object, head, sizeof head)) return 0;
  if (value_at<Address>(head, python_object_type) != python.text_type) return 0;
  const auto length =
      static_cast<std::size_t>(std::min<std::uint64_t>(value_at<std::uint64_t>(head, python_text_length), longest));
  const auto state = value_at<std::uint32_t>(head, python_text_state);
  const std::uint32_t character_bytes = state >> 2 & 7;
  const bool is_compact = (state >> 5 & 1) != 0, is_ascii = (state >> 6 & 1) != 0;
  if (!is_compact || (character_bytes != 1 && character_bytes != 2 && character_bytes != 4)) return 0;
  const Address data = object + (is_ascii ? python.layout.text.ascii_text : python.layout.text.other_text);
  std::byte raw[4 * longest];
  if (!memory.read(data, raw, length * character_bytes)) return 0;
  if (is_ascii) return intern({reinterpret_cast<const char*>(raw), length});
  wchar_t wide[longest_wide];
  static_assert(sizeof(wchar_t) == 4);
  const std::size_t kept = std::min(length, longest_wide - 1);
  for (std::size_t i = 0; i < kept; ++i) {
    std::uint32_t character = 0;
    memcpy(&character, raw + i * character_bytes, character_bytes);
    wide[i] = static_cast<wchar_t>(character);
  }
  wide[kept] = L'\0';
  return intern(wide);
}

// The code object at the address, whose first bytes are `head`; nullptr if there is none.
Code* find_code(ProgramMemory& memory, Address at, const std::byte* head) {
  const PythonLayout& layout = python.layout;
  if (value_at<Address>(head, python_object_type) != python.code_type) return nullptr;
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  Code& code = codes[at * odd >> 32 & (most_code - 1)];
  const Code now{.at = at,
                 .file = value_at<Address>(head, layout.code.file),
                 .name = value_at<Address>(head, layout.code.name),
                 .lines = value_at<Address>(head, layout.code.lines),
                 .first_line = value_at<std::uint32_t>(head, layout.code.first_line)};
  if (code.at == at && code.file == now.file && code.name == now.name && code.lines == now.lines &&
      code.first_line == now.first_line) {
    return &code;
  }
  const std::uint32_t function = read_text(memory, now.name);
  if (function == 0) return nullptr;
  code = now;
  code.function_name = function;
  code.file_name = read_text(memory, now.file);
  code.number = ++latest_code;
  return &code;
}

std::uint32_t line_of(ProgramMemory& memory, const Code& code, std::uint64_t instruction) {
  constexpr std::size_t longest = 64 * 1024;
  static std::uint8_t table[longest];
  const PythonLayout& layout = python.layout;
  std::int64_t offset = 0;
  if (layout.code.instructions != 0) {
    offset = static_cast<std::int64_t>(instruction - (code.at + layout.code.instructions));
  } else {
    offset = static_cast<std::int32_t>(instruction) * static_cast<std::int64_t>(layout.instruction_bytes);
  }
  if (offset < 0 || offset > INT32_MAX) return code.first_line;
  const std::uint64_t key = std::uint64_t{code.number} << 32 | static_cast<std::uint64_t>(offset);
  if (const std::uint32_t known = lines_of_instructions.find(key, 1); known != 0) return known - 1;
  std::byte head[python_bytes_data];
  std::uint32_t line = code.first_line;
  if (memory.read(code.lines, head, sizeof head)) {
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>(value_at<std::uint64_t>(head, python_bytes_length), longest));
    if (memory.read(code.lines + python_bytes_data, table, size)) {
      line = python_line(layout.line_table, std::span(table).first(size), code.first_line, offset);
    }
  }
  if (lines_of_instructions.is_full()) lines_of_instructions.clear();
  lines_of_instructions.add(key, 1, line + 1);
  return line;
}

// The system's number of a thread, where Python only keeps pthread's handle: the C library stores the number in the
// structure that the handle points to, at a place that is found in the calling thread's own one.
pid_t system_thread_id(ProgramMemory& memory, Address handle) {
  static std::size_t place = 0;
  if (place == 0) {
    constexpr std::size_t first = 256, last = 2048;
    const auto own = static_cast<Address>(pthread_self());
    const auto wanted = static_cast<pid_t>(syscall(SYS_gettid));
    for (std::size_t at = first; at < last; at += sizeof(pid_t)) {
      pid_t there = 0;
      if (!memory.read(own + at, &there, sizeof there)) break;
      if (there != wanted) continue;
      place = at;
      break;
    }
    if (place == 0) return 0;
  }
  pid_t id = 0;
  return memory.read(handle + place, &id, sizeof id) ? id : 0;
}

// Python's structure for a thread; 0 if it has none.
Address find_thread(ProgramMemory& memory, pid_t wanted) {
  const PythonLayout& layout = python.layout;
  const Address interpreter = python.main_interpreter();
  Address thread = 0;
  if (interpreter == 0 || !memory.read_value(interpreter + layout.interpreter.threads, thread)) return 0;
  constexpr int most_threads = 4096;
  for (int i = 0; i < most_threads && thread != 0; ++i) {
    Address owner = 0, id = 0;
    if (!memory.read_value(thread + layout.thread.interpreter, owner) || owner != interpreter) return 0;
    const bool has_id = layout.thread.system_thread_id != 0;
    if (!memory.read_value(thread + (has_id ? layout.thread.system_thread_id : layout.thread.thread_id), id)) return 0;
    if ((has_id ? static_cast<pid_t>(id) : system_thread_id(memory, id)) == wanted) return thread;
    if (!memory.read_value(thread + layout.thread.next, thread)) return 0;
  }
  return 0;
}

Address innermost_frame(ProgramMemory& memory, Address thread) {
  Address from = thread, frame = 0;
  if (python.layout.thread.c_frame != 0 && !memory.read_value(thread + python.layout.thread.c_frame, from)) return 0;
  return memory.read_value(from + python.layout.thread.frame, frame) ? frame : 0;
}

// Reads at most `most` frames, from the innermost one on.
std::size_t read_frames(ProgramMemory& memory, Address at, std::size_t most = most_frames) {
  const PythonLayout& layout = python.layout;
  std::size_t count = 0;
  for (std::size_t steps = 0; at != 0 && count < most && steps < 2 * most; ++steps) {
    Frame frame;
    Address caller = 0;
    std::uint8_t owner = 0;
    constexpr std::uint8_t of_interpreter = 3;
    constexpr Address tags = 7;  // of 3.14 and 3.15, in the lowest bits of a reference
    if (!memory.read_value(at + layout.frame.caller, caller) || !memory.read_value(at + layout.frame.code, frame.code))
      break;
    if (layout.frame.owner != 0 && !memory.read_value(at + layout.frame.owner, owner)) break;
    if (owner < of_interpreter && memory.read_value(at + layout.frame.instruction, frame.instruction)) {
      if (layout.code.instructions == 0) frame.instruction &= 0xffff'ffff;  // an int
      frame.code &= ~tags;
      frames[count++] = frame;
    }
    at = caller;
  }
  return count;
}

// The stack that read_frames() read. It ends at the first frame that is not valid, because the thread went on
// meanwhile.
std::uint32_t stack_of_frames(ProgramMemory& memory, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) addresses[i] = frames[i].code;
  std::size_t readable = memory.read_all(std::span(addresses, count), code_bytes, heads);
  // From the outermost frame on: the frames below an unreadable one are those that the thread left.
  std::uint32_t stack = 0;
  for (std::size_t i = count; i-- > 0;) {
    if (i >= readable && !memory.read(frames[i].code, heads[i], code_bytes)) return stack;
    const Code* code = find_code(memory, frames[i].code, heads[i]);
    if (code == nullptr) return stack;
    const std::uint32_t line = line_of(memory, *code, frames[i].instruction);
    stack = stack_below(stack, {code->function_name, code->file_name, line});
  }
  return stack;
}

}  // namespace

void look_for_python(ProgramMemory& memory) {
  if (found != PythonFound::none) return;
  found = find_python(memory, python);
  if (found == PythonFound::unsupported && speaks_for_the_job()) {
    say("no stacks of Python functions: the layout of Python %s is not known (known: 3.8 to 3.15)", python.version);
  }
  if (found != PythonFound::supported) return;
  codes = static_cast<Code*>(mmap(nullptr, most_code * sizeof(Code), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (codes == MAP_FAILED) found = PythonFound::unsupported;
}

std::uint32_t python_stack(ProgramMemory& memory, pid_t thread) {
  sampled_thread = 0;
  if (found != PythonFound::supported) return 0;
  std::size_t count = 0;
  // The frames of a thread that runs may change while they are read. One that calls and returns all the time never
  // stands still, and its outer frames are right all the same.
  constexpr int tries = 2;
  for (int i = 0; i < tries; ++i) {
    memory.forget_pages();
    const Address of = sampled_thread = find_thread(memory, thread);
    if (of == 0) return 0;
    const Address innermost = innermost_frame(memory, of);
    count = read_frames(memory, innermost);
    memory.forget_pages();
    if (innermost_frame(memory, of) == innermost) break;
  }
  return stack_of_frames(memory, count);
}

std::uint32_t holder_of_python_lock(ProgramMemory& memory, Address futex) {
  if (found != PythonFound::supported) return 0;
  // The lock is a structure that 3.8 to 3.15 begin alike: interval, the thread that held it last, whether it is held, a
  // number, and the condition of the C library on which threads wait: in one of two words of it, where glibc 2.41 has
  // them or where older ones do.
  constexpr Address condition_at = 32;
  struct {
    std::uint64_t interval;
    Address holder;
    std::int32_t is_held;
  } lock{};
  // Most threads wait for something else.
  const auto is_lock = [&](Address words_at) {
    Address owner = 0;
    return memory.read_value((futex & ~Address{7}) - words_at - condition_at, lock) && lock.is_held == 1 &&
           lock.holder != sampled_thread &&  // it has got the lock since
           memory.read_value(lock.holder + python.layout.thread.interpreter, owner) &&
           owner == python.main_interpreter();
  };
  if (!is_lock(40) && !is_lock(32)) return 0;
  if (read_frames(memory, innermost_frame(memory, lock.holder), 1) == 0 ||
      !memory.read(frames[0].code, heads[0], code_bytes)) {
    return 0;
  }
  Code* code = find_code(memory, frames[0].code, heads[0]);
  if (code == nullptr) return 0;
  if (code->as_holder == 0) {
    char text[512];
    const std::string_view function = name_of(code->function_name);
    snprintf(text, sizeof text, "Python's lock, held by %.*s", static_cast<int>(function.size()), function.data());
    code->as_holder = intern(text);
  }
  return code->as_holder;
}

Address python_code() {
  return found == PythonFound::supported ? reinterpret_cast<Address>(python.main_interpreter) : 0;
}

void forget_python() {
  found = PythonFound::none;
  if (codes != nullptr) munmap(codes, most_code * sizeof(Code));
  codes = nullptr;
  lines_of_instructions.clear();
}

}  // namespace paceline::inject
