// SPDX-License-Identifier: Apache-2.0
// MPI calls of one file.
#pragma once

#include <array>
#include <cstdint>

#include "analysis/importers/pace/context.h"

namespace paceline::analysis {

class PaceMpi {
 public:
  explicit PaceMpi(PaceContext& context) : context_(context) {}

  // A call that has begun and not ended.
  struct Call {
    std::uint32_t slice = 0;
    std::uint64_t ticks = 0;
  };

  // To be called before the events of another track.
  void start_track() { latest_.fill({}); }

  // The begin of a call, as a slice of `track` that is still open. The first is for a call without arguments.
  Call begin_simple(TrackBuilder& track, std::int64_t time_ns, const format::Slot& head) {
    const auto call = format::unpack<format::events::MpiBegin>(&head);
    const KindId kind =
        call.by_tool != 0 ? context_.words.mpi_of_tool(call.function) : context_.words.mpi(call.function);
    return {track.begin_slice(time_ns, kind), ticks_of(head)};
  }
  Call begin(TrackBuilder& track, std::int64_t time_ns, const format::Slot& head);

  // The open call posted or completed that operation.
  void request(TrackBuilder& track, const Call& call, std::uint64_t request) {
    track.varying_argument(call.slice, context_.words.request, request);
  }

 private:
  // Most calls of a program repeat the arguments of an earlier one.
  struct Latest {
    std::uint64_t what = 0, bytes = 0, rest = 0;  // what = 0: not used
    RecordId record = 0;
  };

  RecordId peer_record(Records& records, const format::events::MpiBeginPeer& call) const;
  RecordId collective_record(Records& records, const format::events::MpiBeginColl& call) const;
  void add_file(TrackBuilder& track, std::uint32_t slice, const format::events::MpiBeginFile& call) const;
  void add_window(TrackBuilder& track, std::uint32_t slice, const format::events::MpiBeginWindow& call) const;
  template <class Make>
  RecordId latest_or(std::uint64_t what, std::uint64_t bytes, std::uint64_t rest, Make&& make);

  PaceContext& context_;
  std::array<Latest, 1024> latest_{};
};

}  // namespace paceline::analysis
