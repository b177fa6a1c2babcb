// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/stacks/stack_table.h"

#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/sources/stacks/number_table.h"

namespace paceline::inject {
namespace {

NumberTable numbers(std::size_t{1} << 17);
std::uint32_t latest = 0;

}  // namespace

std::uint32_t stack_below(std::uint32_t caller, const StackFrame& frame) {
  const std::uint64_t called = std::uint64_t{caller} << 32 | frame.function;
  const std::uint64_t place = std::uint64_t{frame.file} << 32 | frame.line;
  if (const std::uint32_t known = numbers.find(called, place); known != 0) return known;
  if (numbers.is_full()) return caller;
  const std::uint32_t stack = latest + 1;
  if (!emit_surely(events::Stack{
          .stack = stack, .caller = caller, .function = frame.function, .file = frame.file, .line = frame.line})) {
    return caller;
  }
  if (!numbers.add(called, place, stack)) return caller;
  return latest = stack;
}

void forget_stacks() {
  numbers.clear();
  latest = 0;
}

}  // namespace paceline::inject
