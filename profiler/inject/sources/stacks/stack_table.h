// SPDX-License-Identifier: Apache-2.0
// The stacks that this file has: equal ones are defined once. On the sampler's thread only.
#pragma once

#include <cstdint>

namespace paceline::inject {

struct StackFrame {
  std::uint32_t function = 0, file = 0;  // names
  std::uint32_t line = 0;
};

// The number of the stack in which `caller` called this frame. Returns `caller` if there are too many stacks, or no
// room for the definition.
std::uint32_t stack_below(std::uint32_t caller, const StackFrame& frame);

// In a forked child: its file has no stacks yet.
void forget_stacks();

}  // namespace paceline::inject
