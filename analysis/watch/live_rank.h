// SPDX-License-Identifier: Apache-2.0
// The last part of what one rank of a running job did: its window, which the importer reads as it reads the file of a
// flight recorder. Events before the window are gone, but for ranges and calls that are still open and for what later
// events refer to.
//
// Times are ticks since the file's start_ticks. CUDA's and NCCL's events are left out: they come when their buffer is
// full, which may be after their iteration was counted.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/importers/pace/processes.h"
#include "analysis/watch/growing_file.h"
#include "profiler/format/events.h"

namespace paceline::analysis {

class LiveRank {
 public:
  // Takes the events of one poll; `facts` are those of the file. At most about `most_slots` slots are kept, the newest.
  // Cost: linear in the events; in the window where it was too long.
  void add(std::span<const NewEvents> news, const format::TraceFacts& facts, std::size_t most_slots);

  // The process as the importer takes it. `now_ticks`: the end of the recording so far. Valid until the next call.
  // Cost: linear in the window, at the speed of a copy.
  const PaceProcess& window(int number, std::uint64_t now_ticks, const std::string& damage);
  // Makes the window begin at these ticks. Cost: linear in the window.
  void drop_before(std::uint64_t ticks);
  bool skipped() const { return skipped_; }  // events were left out that nobody has counted

  // The same without its events.
  const PaceProcess& process() const { return process_; }
  std::uint64_t last_ticks() const { return last_ticks_; }            // of the newest range, mark or MPI call
  std::uint64_t longest_silence() const { return longest_silence_; }  // ticks between two of them on the main thread

  // The main thread's stack that was recorded last because of a hang or a request; frames from the outermost one on.
  struct RecordedStack {
    struct Frame {
      std::string function, file;  // hostile
      std::uint32_t line = 0;      // 0 = not known
    };
    std::uint64_t ticks = 0;
    std::vector<Frame> frames;  // empty where the thread ran code without known functions
  };
  // Nothing where none was recorded.
  std::optional<RecordedStack> recorded_stack() const;

 private:
  void take(const NewEvents& part, bool main);
  void define(const format::Slot& head);

  PaceProcess process_{PaceEvents(format::TraceFile{}), {}, {}};
  std::vector<format::Track> tracks_;  // by id
  std::uint64_t begin_ =
      1;  // of the window; never 0, as if the file were whole: NCCL's calls would be counted from here
  bool skipped_ = false, defined_ = false;
  std::uint64_t last_ticks_ = 0, longest_silence_ = 0, end_ticks_ = 0;
  std::unordered_map<std::uint32_t, format::events::Stack> stacks_;
  std::optional<std::pair<std::uint64_t, std::uint32_t>> recorded_stack_;  // ticks and stack
};

}  // namespace paceline::analysis
