// SPDX-License-Identifier: Apache-2.0
// Numbers for tracks, slices and marks that are unique in a run.
//
// Tracks are numbered from 0, rank after rank in the order of Trace::ranks and Rank::tracks. The id of a slice holds
// the number of its track and its position on the track. The same files always give the same ids, so `paceline query`
// and `paceline export --to sqlite` agree on them.
#pragma once

#include <cstdint>

namespace paceline::analysis {

using TrackNumber = std::uint32_t;  // among all tracks of the run

// 0 or above.
constexpr std::int64_t slice_id(TrackNumber track, std::uint32_t position) {
  return std::int64_t{track} << 32 | position;
}
// Below 0, so that it differs from the ids of all slices.
constexpr std::int64_t mark_id(TrackNumber track, std::uint32_t position) { return -1 - slice_id(track, position); }

// Where the slice or mark of an id is.
struct EventPlace {
  TrackNumber track = 0;
  std::uint32_t position = 0;
  bool is_mark = false;
};
constexpr EventPlace place_of(std::int64_t id) {
  const auto packed = static_cast<std::uint64_t>(id < 0 ? -1 - id : id);
  return {static_cast<TrackNumber>(packed >> 32), static_cast<std::uint32_t>(packed), id < 0};
}

}  // namespace paceline::analysis
