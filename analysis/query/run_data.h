// SPDX-License-Identifier: Apache-2.0
// What the tables of `paceline query` read: the trace, its tracks by number, and figures that are computed when a
// statement first needs them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "analysis/communication/messages.h"
#include "analysis/query/track_index.h"
#include "analysis/run/index/run_index.h"
#include "analysis/trace/slice_id.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// One call of one rank.
struct CollectiveEntry {
  static constexpr std::uint32_t unmatched = ~std::uint32_t{0};
  std::uint32_t rank = 0, call = 0;  // index into the ranks, and into the rank's calls
  std::uint32_t collective = unmatched;
  std::uint32_t arrival = 0;  // among the members of the collective, 0 = the first
};

struct CollectiveData {
  std::vector<CollectiveEntry> entries;                // by rank, then in the order of the rank's calls
  std::map<std::uint64_t, std::string> communicators;  // texts by identity
};

// An iteration of one rank, and the index of the rank.
struct IterationEntry {
  std::uint32_t rank = 0;
  const Iteration* of = nullptr;
};

struct KindTotals {
  std::int64_t count = 0, duration_ns = 0;
};

class RunData {
 public:
  // The index and its trace must outlive this.
  explicit RunData(const RunIndex& index);

  const RunIndex& index() const { return index_; }
  const Trace& trace() const { return trace_; }

  struct TrackPlace {
    std::uint32_t rank = 0, track = 0;  // index into Trace::ranks and Rank::tracks
    const Track* of = nullptr;
  };
  std::span<const TrackPlace> tracks() const { return tracks_; }  // by number
  TrackNumber first_track(std::uint32_t rank) const { return first_track_[rank]; }
  // Indexes of a track's slices or marks, made on first use.
  TrackIndex& track_index(TrackNumber track, bool marks) {
    return marks ? mark_indexes_[track] : slice_indexes_[track];
  }

  const std::vector<IterationEntry>& iterations();  // rank after rank
  const RankTimes& times(std::size_t rank);         // measures all ranks in parallel on first use
  const CollectiveData& collectives();
  const Messages& messages();
  const std::vector<KindTotals>& kind_totals();

  // Set from a signal handler to end the statement that runs.
  std::atomic<bool> interrupted{false};
  // Throws Error after an interruption. For loops that SQLite does not see.
  void check_interruption() const;

 private:
  const RunIndex& index_;
  const Trace& trace_;
  std::vector<TrackPlace> tracks_;
  std::vector<TrackNumber> first_track_;  // by rank
  std::vector<TrackIndex> slice_indexes_, mark_indexes_;
  std::vector<IterationEntry> iterations_;
  std::unique_ptr<CollectiveData> collectives_;
  std::unique_ptr<Messages> messages_;
  std::vector<KindTotals> kind_totals_;
};

}  // namespace paceline::analysis
