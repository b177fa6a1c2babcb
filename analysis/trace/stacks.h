// SPDX-License-Identifier: Apache-2.0
// Stacks of threads, sampled: a frame is a function with its place, a stack is a frame and the stack that called it.
// Equal frames and equal stacks of all ranks are stored once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/trace/kinds.h"

namespace paceline::analysis {

using FrameId = std::uint32_t;
using StackId = std::uint32_t;  // 0 is the empty stack

struct Frame {
  NameId function = 0;
  NameId file = 0;         // the source file, or the library of a function without one; 0: not known
  std::uint32_t line = 0;  // that was executed; 0: not known
  bool operator==(const Frame&) const = default;
};

// The stacks of a trace as a tree, numbered in the order in which they were interned: a caller has a smaller number
// than what it called.
class Stacks {
 public:
  Stacks() { nodes_.push_back({}); }

  // O(1).
  FrameId frame(const Frame& frame);
  StackId stack(StackId caller, FrameId innermost);

  const Frame& operator[](FrameId id) const { return frames_[id]; }
  // Of a stack other than 0.
  StackId caller(StackId stack) const { return nodes_[stack].caller; }
  FrameId innermost(StackId stack) const { return nodes_[stack].innermost; }
  std::size_t frames() const { return frames_.size(); }
  std::size_t size() const { return nodes_.size(); }  // with the empty stack

 private:
  struct Node {
    StackId caller = 0;
    FrameId innermost = 0;
  };
  struct FrameHash {
    std::size_t operator()(const Frame& frame) const;
  };
  std::vector<Frame> frames_;
  std::vector<Node> nodes_;
  std::unordered_map<Frame, FrameId, FrameHash> frame_ids_;
  std::unordered_map<std::uint64_t, StackId> stack_ids_;  // by caller << 32 | innermost
};

// What a thread was doing at the times at which it was sampled.
struct StackSamples {
  std::vector<std::int64_t> time_ns;  // rising
  std::vector<StackId> stack;         // of the trace's Stacks
  std::int64_t period_ns = 0;         // the time that a sample stands for; 0: not known

  std::size_t size() const { return time_ns.size(); }
};

}  // namespace paceline::analysis
