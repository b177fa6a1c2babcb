// SPDX-License-Identifier: Apache-2.0
// The stacks of a file, and the samples of its threads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/importers/pace/context.h"

namespace paceline::analysis {

class PaceStacks {
 public:
  explicit PaceStacks(PaceContext& context) : context_(context) {}

  // The events `stack` and `stack_sample`. A stack that was lost counts as the empty one.
  void define(const format::Slot& head);
  void sample(const format::Slot& head);

  // The track of a thread that has events.
  void add_thread(std::uint64_t thread_id, TrackBuilder& track) { tracks_[thread_id] = &track; }
  // Adds the samples to the threads' tracks, after all events. Other threads get a track of their own.
  void add_samples(const std::string& process);

 private:
  struct Sample {
    std::uint64_t ticks = 0, period_ns = 0;
    StackId stack = 0;
  };
  StackId stack(std::uint32_t number) const;

  PaceContext& context_;
  std::unordered_map<std::uint32_t, StackId> stacks_;  // by the file's number
  std::map<std::uint64_t, TrackBuilder*> tracks_;      // by thread
  std::map<std::uint64_t, std::vector<Sample>> samples_;
};

}  // namespace paceline::analysis
