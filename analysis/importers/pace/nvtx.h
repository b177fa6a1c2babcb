// SPDX-License-Identifier: Apache-2.0
// NVTX ranges and marks of one file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/importers/pace/context.h"
#include "analysis/importers/pace/nvtx_payloads.h"

namespace paceline::analysis {

class PaceNvtx {
 public:
  explicit PaceNvtx(PaceContext& context) : context_(context) {}

  // What is open on one track.
  class Thread {
   private:
    friend class PaceNvtx;
    struct Push {
      std::uint32_t slice = 0;
      std::uint16_t domain = 0;  // each NVTX domain pushes and pops on its own
      std::uint64_t ticks = 0;
    };
    // A range by start and end, which need not nest with anything.
    struct Range {
      std::uint64_t start_ticks = 0, end_ticks = 0;
      std::uint64_t scope = 0;
      bool ended = false, crosses = false;
      std::optional<Argument> payload;
      DecodedPayloads extended;
    };
    // A range that has started. One that is not innermost when it ends, or that is open across the end of a push around
    // it, crosses its neighbours.
    struct OpenRange {
      std::size_t range = 0;   // index
      std::size_t pushes = 0;  // open ones around it
    };
    std::vector<Push> pushes_;
    std::vector<Range> ranges_;
    std::vector<OpenRange> open_ranges_;  // the innermost last
    std::unordered_map<std::uint64_t, std::size_t> range_of_id_;
  };

  // Each takes one event of a track, its time and the payloads before it. These two are for pushes and pops as most
  // are: without payloads, and in the innermost range. simple_pop() returns false, and does nothing, where a pop is
  // not.
  [[gnu::always_inline]] void simple_push(TrackBuilder& track, Thread& thread, std::int64_t time_ns,
                                          const format::Slot& head) {
    const std::uint64_t scope = scope_of(head);
    thread.pushes_.push_back(
        {track.begin_slice(time_ns, context_.kind(scope)), parts_of(scope).domain, ticks_of(head)});
  }
  [[gnu::always_inline]] bool simple_pop(TrackBuilder& track, Thread& thread, std::int64_t time_ns,
                                         const format::Slot& head) {
    const std::uint16_t domain = format::unpack<format::events::Pop>(&head).domain;
    if (thread.pushes_.empty() || thread.pushes_.back().domain != domain || !thread.open_ranges_.empty()) return false;
    track.end_slice(thread.pushes_.back().slice, time_ns);
    thread.pushes_.pop_back();
    return true;
  }
  void push(TrackBuilder& track, Thread& thread, std::int64_t time_ns, const format::Slot& head,
            std::span<const format::Slot> payloads);
  void pop(TrackBuilder& track, Thread& thread, std::int64_t time_ns, const format::Slot& head,
           std::span<const format::Slot> payloads);
  void mark(TrackBuilder& track, std::int64_t time_ns, const format::Slot& head,
            std::span<const format::Slot> payloads);
  void start(std::size_t track_index, Thread& thread, const format::Slot& head, std::span<const format::Slot> payloads);
  void end(Thread& thread, const format::Slot& head);

  // Ends the pushes that were open when a gap began, because their end is in it or nobody knows where: they end with
  // the begin of the gap, unfinished.
  void cut(TrackBuilder& track, Thread& thread, const PaceGap& gap);

  // Adds the ranges by start and end of a track, after its last event. Those that cross others go to a track beside it.
  void place_ranges(TrackBuilder& track, const Thread& thread, const std::string& label, std::uint64_t thread_id);

 private:
  struct RangeEnd {
    std::uint32_t track = 0;
    std::uint64_t ticks = 0;  // relative, as in events
    std::vector<format::Slot> payloads;
  };
  using RangeEnds = std::unordered_map<std::uint64_t, RangeEnd>;  // by range id
  // A range may end on any track, so the first start reads all ends of the file.
  const RangeEnds& range_ends();

  // Valid until the next call.
  const DecodedPayloads& decode(std::span<const format::Slot> payloads, std::uint16_t domain) {
    return payloads.empty() ? no_payloads_ : decode_some(payloads, domain);
  }
  const DecodedPayloads& decode_some(std::span<const format::Slot> payloads, std::uint16_t domain);
  // The kind of the scope, but with the name that the payloads give.
  KindId kind(std::uint64_t scope, const DecodedPayloads& payloads) {
    const KindId plain = context_.kind(scope);
    return payloads.message.empty() ? plain : named(plain, payloads.message);
  }
  KindId named(KindId plain, const std::string& name);
  std::optional<Argument> argument_of(const PayloadValue& value);
  void add_values(TrackBuilder& track, std::uint32_t slice, const DecodedPayloads& payloads) {
    for (const PayloadValue& value : payloads.values) {
      if (const auto argument = argument_of(value)) track.add_argument(slice, *argument);
    }
  }
  void add_mark_values(TrackBuilder& track, std::uint32_t mark, const DecodedPayloads& payloads);

  PaceContext& context_;
  PayloadSchemas::Lookup lookup_{context_.definitions.names, context_.definitions.categories};
  DecodedPayloads decoded_;
  const DecodedPayloads no_payloads_{};
  std::optional<RangeEnds> range_ends_;
};

}  // namespace paceline::analysis
