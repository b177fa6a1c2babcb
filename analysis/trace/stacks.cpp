// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace/stacks.h"

namespace paceline::analysis {

std::size_t Stacks::FrameHash::operator()(const Frame& frame) const {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  std::uint64_t hash = (std::uint64_t{frame.function} << 32 | frame.file) * odd;
  hash = (hash ^ hash >> 29 ^ frame.line) * odd;
  return static_cast<std::size_t>(hash ^ hash >> 32);
}

FrameId Stacks::frame(const Frame& frame) {
  const auto [found, fresh] = frame_ids_.try_emplace(frame, static_cast<FrameId>(frames_.size()));
  if (fresh) frames_.push_back(frame);
  return found->second;
}

StackId Stacks::stack(StackId caller, FrameId innermost) {
  const auto [found, fresh] =
      stack_ids_.try_emplace(std::uint64_t{caller} << 32 | innermost, static_cast<StackId>(nodes_.size()));
  if (fresh) nodes_.push_back({caller, innermost});
  return found->second;
}

}  // namespace paceline::analysis
