// SPDX-License-Identifier: Apache-2.0
// The frames of a stack, in order.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/trace/stacks.h"

namespace paceline::analysis {

// The outermost frame first. Cost: linear in the depth.
std::vector<FrameId> frames_of(const Stacks& stacks, StackId stack);

// The system call in which a blocked thread waits is the innermost function of its stack, in brackets: "[read]" gives
// "read". "" for other functions.
std::string_view system_call(std::string_view function);

// Whether the file of a frame is a shared library: "/usr/lib/libmpi.so.40".
bool is_shared_library(std::string_view file);

}  // namespace paceline::analysis
