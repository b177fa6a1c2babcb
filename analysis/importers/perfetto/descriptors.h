// SPDX-License-Identifier: Apache-2.0
// The tracks and processes that a file describes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis::perfetto {

struct ProcessInfo {
  std::int64_t pid = 0;
  std::string name;
  std::vector<std::string> command, labels;
  std::optional<std::uint64_t> start;  // on the usual clock
};

struct TrackInfo {
  std::uint64_t uuid = 0, parent = 0;
  std::string name, description, merge_key;
  std::uint64_t merge_number = 0;  // a merge key that is a number
  std::uint64_t merging = 0;       // how it is merged with its siblings
  std::optional<std::int64_t> pid;
  std::optional<std::int64_t> thread;  // its number
  bool is_process = false;
  std::string unit;
  std::int64_t multiplier = 1;
  bool increments = false;  // a counter whose values are differences
};

class Descriptors {
 public:
  void add_track(std::string_view bytes);
  std::int64_t add_process(std::string_view bytes);  // its number
  // A ThreadDescriptor outside a track: the track that the sequence's events without a track are on.
  void add_thread(std::uint64_t sequence, std::string_view bytes);

  // The track; nullptr where the file does not describe it.
  const TrackInfo* track(std::uint64_t uuid) const;
  // The process around the track, by number; nothing where it has none, and in a circle of parents.
  std::optional<std::int64_t> process_of(const TrackInfo& track) const;
  const std::map<std::int64_t, ProcessInfo>& processes() const { return processes_; }
  // The track of a sequence's events that name none.
  static std::uint64_t thread_track(std::uint64_t sequence) { return sequence | std::uint64_t{1} << 63; }

 private:
  void take_thread(std::string_view bytes, TrackInfo& track);

  std::unordered_map<std::uint64_t, TrackInfo> tracks_;
  std::map<std::int64_t, ProcessInfo> processes_;
};

}  // namespace paceline::analysis::perfetto
