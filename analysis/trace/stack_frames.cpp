// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace/stack_frames.h"

#include <algorithm>

namespace paceline::analysis {

std::vector<FrameId> frames_of(const Stacks& stacks, StackId stack) {
  std::vector<FrameId> frames;
  for (; stack != 0; stack = stacks.caller(stack)) frames.push_back(stacks.innermost(stack));
  std::ranges::reverse(frames);
  return frames;
}

std::string_view system_call(std::string_view function) {
  const bool is_one = function.size() > 2 && function.front() == '[' && function.back() == ']';
  return is_one ? function.substr(1, function.size() - 2) : std::string_view();
}

bool is_shared_library(std::string_view file) {
  const std::string_view name = file.substr(file.rfind('/') + 1);
  return name == "vdso" || name.ends_with(".so") || name.find(".so.") != name.npos;
}

}  // namespace paceline::analysis
