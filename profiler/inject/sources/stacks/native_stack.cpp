// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/stacks/native_stack.h"

#include <string.h>

#include <optional>

#include "profiler/inject/buffer/names.h"
#include "profiler/inject/sources/stacks/loaded_code.h"
#include "profiler/inject/sources/stacks/stack_table.h"

namespace paceline::inject {
namespace {

constexpr std::size_t most_frames = 128;
struct Frame {
  std::uint32_t name, file;
  CodeOwner owner;
};
Frame frames[most_frames];

class Walk {
 public:
  Walk(ProgramMemory& memory, const NativeRegisters& registers)
      : memory_(memory), now_(registers), copy_at_(registers.stack_pointer) {}

  // The function that the thread is in now.
  const LoadedFunction* function() const {
    // A return address is behind the call, which may be the last instruction of its function. It may also be a word of
    // the stack that only looks like one.
    const Address inside = now_.instruction - (is_return_ ? 1 : 0);
    return now_.instruction == 0 ? nullptr : function_at(memory_, inside, !is_return_);
  }

  Address instruction() const { return now_.instruction; }

  // Goes to the caller. Returns false if there is none, or if it is not known (then is_lost()).
  bool go_out(const LoadedFunction& from) {
    if (!from.has_rule) return from.owner == CodeOwner::run_time && !is_return_ ? find_caller() : lose();
    using End = FrameRule::End;
    using Saved = FrameRule::Saved;
    const FrameRule& rule = from.rule;
    if (rule.end == End::outermost) return false;
    if (rule.end == End::signal) return leave_signal();
    const Address before = now_.stack_pointer;
    const bool by_frame_pointer = rule.end == End::frame_pointer || rule.end == End::at_frame_pointer;
    if (by_frame_pointer && !now_.has_frame_pointer) return lose();
    Address end =
        (by_frame_pointer ? now_.frame_pointer : before) + static_cast<Address>(std::int64_t{rule.end_offset});
    if (rule.end == End::at_frame_pointer && !read(end, end)) return lose();
    // The last bytes of the linker's entry are reached after its push.
    if (rule.end == End::plt) end = before + 8 + ((now_.instruction & 15) >= 11 ? 8 : 0);
    Address saved = 0;
    switch (rule.frame_pointer) {
      case Saved::no:
        break;
      case Saved::lost:
        now_.has_frame_pointer = false;
        break;
      case Saved::before_end:
      case Saved::at_frame_pointer:
        saved = rule.frame_pointer == Saved::before_end ? end : now_.frame_pointer;
        if (rule.frame_pointer == Saved::at_frame_pointer && !now_.has_frame_pointer) return lose();
        now_.has_frame_pointer =
            read(saved + static_cast<Address>(std::int64_t{rule.saved_offset}), now_.frame_pointer);
    }
    if (end <= before || !read(end - sizeof(Address), now_.instruction)) return lose();
    now_.stack_pointer = end;
    is_return_ = true;
    return now_.instruction != 0;
  }

  bool is_lost() const { return lost_; }

 private:
  bool lose() {
    lost_ = true;
    return false;
  }

  bool read(Address at, Address& value) {
    const Address offset = at - copy_at_;
    if (at >= copy_at_ && offset + sizeof value <= now_.stack.size()) {
      memcpy(&value, now_.stack.data() + offset, sizeof value);
      return true;
    }
    return memory_.read_value(at, value);
  }

  // The kernel's ucontext_t begins at the stack pointer when the handler has returned.
  bool leave_signal() {
    constexpr Address rbp_at = 120, rsp_at = 160, rip_at = 168;
    const Address context = now_.stack_pointer;
    if (!read(context + rbp_at, now_.frame_pointer) || !read(context + rsp_at, now_.stack_pointer) ||
        !read(context + rip_at, now_.instruction)) {
      return lose();
    }
    now_.has_frame_pointer = true;
    is_return_ = false;
    return true;
  }

  // Code that was made at run time says nothing of its frame. It saves at most a few registers: the first address on
  // the stack that lies behind a call in some file's code is the one to which it returns.
  bool find_caller() {
    constexpr int most_words = 64;
    for (int i = 0; i < most_words; ++i) {
      const Address at = now_.stack_pointer + static_cast<Address>(i) * sizeof(Address);
      Address found = 0;
      if (!read(at, found)) break;
      constexpr Address lowest = 0x1000;
      if (found < lowest || !is_behind_call(found)) continue;
      const LoadedFunction* caller = function_at(memory_, found - 1, false);
      if (caller == nullptr || !caller->has_rule) continue;
      now_.instruction = found;
      now_.stack_pointer = at + sizeof(Address);
      now_.has_frame_pointer = false;  // it may have been used for something else
      is_return_ = true;
      return true;
    }
    return lose();
  }

  // call rel32, and the forms of call r/m64.
  bool is_behind_call(Address at) {
    std::uint8_t code[7];
    if (!memory_.read_near(at - sizeof code, code, sizeof code)) return false;
    const auto is_indirect = [&](unsigned length) {
      const unsigned first = sizeof code - length;
      return code[first] == 0xff && (code[first + 1] >> 3 & 7) == 2;
    };
    return code[2] == 0xe8 || is_indirect(2) || is_indirect(3) || is_indirect(4) || is_indirect(6) || is_indirect(7);
  }

  ProgramMemory& memory_;
  NativeRegisters now_;
  Address copy_at_;
  bool is_return_ = false, lost_ = false;
};

}  // namespace

std::uint32_t native_stack(ProgramMemory& memory, std::uint32_t outer, Address interpreter, bool blocked,
                           const NativeRegisters& registers) {
  std::size_t count = 0;
  memory.forget_pages();
  Walk walk(memory, registers);
  bool at_call = blocked;  // in the functions that made the system call
  for (std::size_t steps = 0; steps < 2 * most_frames && count < most_frames; ++steps) {
    // Before anything is read about the interpreter's code: threads are in other instructions of it each time.
    if (outer != 0 && in_one_piece(walk.instruction(), interpreter)) break;
    const LoadedFunction* function = walk.function();
    if (function == nullptr) break;
    const bool is_interpreter = function->code_begin <= interpreter && interpreter < function->code_end;
    if (outer != 0 && is_interpreter) break;
    at_call = at_call && function->owner == CodeOwner::c_library;
    if (!at_call && function->owner != CodeOwner::recorder) {
      frames[count++] = {function->name, function->file, function->owner};
    }
    if (!walk.go_out(*function)) break;
  }
  // What starts threads and programs is the same for all.
  if (count > 0 && frames[count - 1].name == intern("_start")) --count;
  while (count > 0 && frames[count - 1].owner == CodeOwner::c_library) --count;
  std::uint32_t stack = outer;
  if (outer == 0 && walk.is_lost() && count > 0)
    stack = stack_below(stack, {.function = intern("(callers not known)")});
  for (std::size_t i = count; i-- > 0;) stack = stack_below(stack, {frames[i].name, frames[i].file, 0});
  return stack;
}

}  // namespace paceline::inject
